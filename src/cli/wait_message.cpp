#include "cli/wait_message.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/agent_slots.hpp"
#include "cli/named.hpp"
#include "cli/standard_error.hpp"
#include "tool/printable.hpp"
#include "tool/text.hpp"

namespace lockflight::cli {
namespace {

constexpr std::chrono::milliseconds at_once{0};

bool waits(const domain_use_elsewhere& use) { return use.what == domain_lock_use::how::waits; }

/// How many columns the terminal has.
std::size_t columns() {
  constexpr std::size_t usual = 80;
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

/// A process in the background that writes to the terminal may be stopped for that.
bool may_draw() { return tcgetpgrp(STDERR_FILENO) == getpgrp(); }

/// So many columns of the text at most, by whole characters.
std::string cut(const std::string& text, std::size_t most) {
  std::string made;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < text.size() && taken < most; ++taken) {
    const std::size_t bytes =
        std::max<std::size_t>(1, character_bytes(std::string_view(text).substr(i, 4)));
    made += text.substr(i, bytes);
    i += bytes;
  }
  return made;
}

}  // namespace

std::string holders_text(const std::vector<domain_use_elsewhere>& uses, int self) {
  const auto first_waiter = std::ranges::find_if(uses, waits);
  const auto holders = static_cast<std::size_t>(first_waiter - uses.begin());
  std::string text = "held by nobody at this moment";
  if (holders > 0) text = "held by " + user_text(uses.front());
  if (holders > 1)
    text += " and " + std::to_string(holders - 1) + (holders > 2 ? " others" : " other");
  if (holders > 0) text += " for " + duration(static_cast<double>(uses.front().milliseconds) / 1e3);
  const auto is_us = [self](const domain_use_elsewhere& each) {
    return each.host.empty() && !each.has_foreign_pid && each.pid == self;
  };
  // In a cluster it may have lost the lock, and not have noticed it.
  if (holders == 0 && first_waiter != uses.end() && !is_us(*first_waiter))
    text += ", and " + user_text(*first_waiter) + " comes first";
  const auto us = std::find_if(first_waiter, uses.end(), is_us);
  if (us == first_waiter && us != uses.end()) return text + ", you are next";
  if (us != uses.end()) text += ", " + std::to_string(us - first_waiter) + " before you";
  return text;
}

std::string obstacle_text(const domain& in, const std::string& name) {
  const std::vector<domain_slot> taken = in.participants();
  const int first = in.is_of_cluster() ? slots_of_agent(in.options().slots) : 0;
  const int slots = in.options().slots - first;
  const auto taken_count =
      std::ranges::count_if(taken, [first](const domain_slot& each) { return each.slot >= first; });
  const bool has_slot = std::ranges::any_of(
      taken, [](const domain_slot& each) { return !each.has_foreign_pid && each.pid == getpid(); });
  if (has_slot || taken_count < slots) return holders_text(in.uses_of(name), getpid());
  return "all " + std::to_string(slots) + " slots of domain " + in.name() +
         " are taken ('lockflight domain show " + in.name() + "' lists them)";
}

void wait_message::begin() {
  if (next_ == clock::time_point{}) next_ = clock::now() + std::chrono::seconds(1);
}

void wait_message::update(const domain& in, const std::string& name) {
  if (what_ == kind::none || clock::now() < next_) return;
  const bool asks_hosts = in.is_of_cluster();
  next_ = clock::now() + std::chrono::seconds(asks_hosts ? 5 : 1);
  if (!takes_a_line() || (what_ == kind::redrawn && !may_draw())) return;
  std::string text = "waiting for '" + printable(name) + "', ";
  const auto cut_off = in.cut_off_for();
  text += cut_off.count() != 0 ? "this host is no member of domain " + in.name()
                               : obstacle_text(in, name);
  if (what_ == kind::line) {
    say(text);
    what_ = kind::none;
    return;
  }
  // One column stays free: a terminal may begin a new line when the last one is taken.
  write_within(STDERR_FILENO, "\r" + cut(text, columns() - 1) + "\033[K", at_once);
  is_drawn_ = true;
}

void wait_message::clear() {
  if (std::exchange(is_drawn_, false)) write_within(STDERR_FILENO, "\r\033[K", at_once);
}

}  // namespace lockflight::cli
