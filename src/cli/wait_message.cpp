#include "cli/wait_message.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/agent_slots.hpp"
#include "base/visible_text.hpp"
#include "cli/domain_name.hpp"
#include "cli/named.hpp"
#include "cli/standard_error.hpp"
#include "lockflight/named_control.hpp"

namespace lockflight::cli {
namespace {

constexpr std::chrono::milliseconds at_once{0};

/// How many columns the terminal has.
std::size_t columns() {
  constexpr std::size_t usual = 80;
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

/// A process in the background that writes to the terminal may be stopped for that.
bool may_draw() { return tcgetpgrp(STDERR_FILENO) == getpgrp(); }

std::string users_text(const obstacle& what) {
  const auto holders = holders_of(what.users);
  const auto waiters = waiters_of(what.users);
  std::string text =
      what.silent.empty() ? "held by nobody at this moment" : "its holder is not known";
  if (!holders.empty()) text = "held by " + user_text(holders.front());
  if (holders.size() > 1)
    text +=
        " and " + std::to_string(holders.size() - 1) + (holders.size() > 2 ? " others" : " other");
  if (!holders.empty()) text += " for " + duration(seconds_of(holders.front()));
  const auto is_us = [](const lock_user& each) { return each.is_of_process(getpid()); };
  // In a cluster it may have lost the lock, and not have noticed it.
  if (holders.empty() && !waiters.empty() && !is_us(waiters.front()))
    text += ", and " + user_text(waiters.front()) + " comes first";
  const auto us = std::ranges::find_if(waiters, is_us);
  if (us == waiters.end()) return text;
  if (us == waiters.begin()) return text + ", you are next";
  return text + ", " + std::to_string(us - waiters.begin()) + " before you";
}

}  // namespace

obstacle obstacle_of(const domain& in, named_handle& held,
                     std::chrono::milliseconds hosts_answer_within) {
  obstacle what{.name = held.awaited(), .users = {}, .silent = {}, .missing_answer = ""};
  what.missing_answer = named_control(held).missing_answer();
  if (what.missing_answer.empty())
    what.users = in.users_of(what.name, &what.silent, hosts_answer_within);
  return what;
}

std::string obstacle_text(const domain& in, const obstacle& what) {
  if (!what.missing_answer.empty()) return what.missing_answer;
  const std::vector<domain_slot> taken = in.participants();
  const int first = in.is_of_cluster() ? slots_of_agent(in.options().slots) : 0;
  const int slots = in.options().slots - first;
  const auto taken_count =
      std::ranges::count_if(taken, [first](const domain_slot& each) { return each.slot >= first; });
  const bool has_slot = std::ranges::any_of(
      taken, [](const domain_slot& each) { return !each.has_foreign_pid && each.pid == getpid(); });
  const std::string silence = silence_text(what.silent);
  if (has_slot || taken_count < slots)
    return users_text(what) + (silence.empty() ? "" : "; " + silence);
  return "all " + std::to_string(slots) + " slots of domain " + in.name() + " are taken (" +
         command_that_shows(in) + " lists them)";
}

void wait_message::begin() {
  if (next_ == clock::time_point{}) next_ = clock::now() + std::chrono::seconds(1);
}

void wait_message::update(const domain& in, named_handle& held,
                          std::chrono::milliseconds hosts_answer_within) {
  if (what_ == kind::none || clock::now() < next_ || hosts_answer_within.count() <= 0) return;
  const bool asks_hosts = in.is_of_cluster();
  next_ = clock::now() + std::chrono::seconds(asks_hosts ? 5 : 1);
  if (!takes_a_line() || (what_ == kind::redrawn && !may_draw())) return;
  std::string text = "waiting for " + in_quotes(held.awaited()) + ", ";
  const auto cut_off = in.cut_off_for();
  text += cut_off.count() != 0 ? "this host is no member of domain " + in.name()
                               : obstacle_text(in, obstacle_of(in, held, hosts_answer_within));
  if (what_ == kind::line) {
    say(text);
    what_ = kind::none;
    return;
  }
  // The last column stays free: a terminal may begin a new line when that column is taken.
  write_within(STDERR_FILENO, "\r" + std::string(cut(text, columns() - 1)) + "\033[K", at_once);
  is_drawn_ = true;
}

void wait_message::clear() {
  if (std::exchange(is_drawn_, false)) write_within(STDERR_FILENO, "\r\033[K", at_once);
}

}  // namespace lockflight::cli
