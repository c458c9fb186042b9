#include "cli/circle_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "cli/named.hpp"
#include "cli/standard_error.hpp"

namespace lockflight::cli {
namespace {

bool is_us(const circle_member& each) { return each.user.is_of_process(getpid()); }

/// How many members have waited for a shorter time than this process.
std::ptrdiff_t younger_members(const lock_circle& circle) {
  const auto us = std::ranges::find_if(circle, is_us);
  return std::ranges::count_if(
      circle, [&](const circle_member& each) { return each.user.for_ns < us->user.for_ns; });
}

}  // namespace

bool circle_watch::is_to_end(const domain& in, bool holds,
                             std::chrono::milliseconds hosts_answer_within) {
  constexpr std::chrono::seconds most_pause{16};
  if (!holds || (!says_ && !ends_) || clock::now() < next_) return has_ended_;
  // The hosts are asked a second time if there is a circle, so each time half of the time is
  // theirs.
  const auto at_most = hosts_answer_within / 2;
  if (at_most.count() <= 0) return has_ended_;
  const auto circles = in.circles(in.locks_on_all_hosts(nullptr, at_most), at_most);
  const auto ours = std::ranges::find_if(
      circles, [](const lock_circle& each) { return std::ranges::any_of(each, is_us); });
  const bool is_in_one = ours != circles.end();
  pause_ = is_in_one ? std::chrono::seconds(1) : std::min(2 * pause_, most_pause);
  next_ = clock::now() + pause_;
  if (!is_in_one) return times_seen_ = 0, false;
  message_.clear();
  const bool is_on_this_host =
      std::ranges::all_of(*ours, [](const circle_member& each) { return each.user.host.empty(); });
  if (times_seen_++ == 0 && says_)
    say(std::string("this run ") + (is_on_this_host ? "waits" : "may wait") +
        " in a circle: " + circle_text(*ours));
  has_ended_ = ends_ && is_on_this_host && times_seen_ > younger_members(*ours);
  if (has_ended_) say("this run gives up, so that the others of the circle can go on");
  return has_ended_;
}

}  // namespace lockflight::cli
