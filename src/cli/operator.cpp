#include "cli/operator.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "base/visible_text.hpp"
#include "cli/named.hpp"

namespace lockflight::cli {
namespace {

using result = ordered_hold::result;

/// "root (uid 0) on h1, process 4711": who gives orders.
std::string ourselves() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const uid_t user = getuid();
  const passwd* const known = getpwuid(user);  // one thread runs
  return fmt::format("{} (uid {}) on {}, process {}",
                     known == nullptr ? "a user" : visible(known->pw_name), user,
                     visible(host.data()), getpid());
}

void log(const domain& in, const hold_order& what, const std::vector<ordered_hold>& found) {
  openlog("lockflight", LOG_PID, LOG_DAEMON);
  for (const ordered_hold& each : found) {
    const std::string line =
        fmt::format("{}: {} of {} in domain {}: {}", what.by,
                    what.what == hold_order::kind::kills      ? "kills the holder"
                    : what.what == hold_order::kind::releases ? "releases a hold"
                                                              : "breaks a hold",
                    in_quotes(what.name), visible(in.name()), user_text(each.user));
    syslog(LOG_NOTICE, "%s: %s", line.c_str(), std::string(text_of(each.how)).c_str());
  }
  closelog();
}

bool is_same_hold(const lock_user& a, const lock_user& b) {
  return a.host == b.host && a.hold == b.hold && a.pid == b.pid;
}

}  // namespace

operated_lock::operated_lock(const domain_name& where, std::string name)
    : in_(where.attach()), name_(std::move(name)) {}

std::vector<lock_user> operated_lock::holders() const {
  std::vector<lock_user> all = in_.users_of(name_, &silent_);
  std::erase_if(all, [](const lock_user& each) { return each.waits() || each.dead; });
  return all;
}

std::vector<ordered_hold> operated_lock::order(hold_order what) const {
  what.name = name_;
  what.by = ourselves();
  const auto found = domain_operator(in_).order(what, &silent_);
  log(in_, what, found);
  return found;
}

std::vector<lock_user> operated_lock::await_end(
    const std::vector<ordered_hold>& of, std::chrono::nanoseconds at_most,
    const std::function<void(const lock_user&)>& has_ended) const {
  using clock = std::chrono::steady_clock;
  std::vector<lock_user> left;
  for (const ordered_hold& each : of)
    if (each.how == result::told || each.how == result::killed) left.push_back(each.user);
  const auto until = clock::now() + at_most;
  const auto pause = std::chrono::milliseconds(in_.is_of_cluster() ? 200 : 20);
  while (!left.empty()) {
    const auto now = holders();
    std::erase_if(left, [&](const lock_user& each) {
      // A host that does not answer now may hold still.
      const bool is_there =
          std::ranges::any_of(now,
                              [&](const lock_user& other) { return is_same_hold(each, other); }) ||
          (!each.host.empty() && !silent_.empty());
      if (!is_there) has_ended(each);
      return !is_there;
    });
    if (left.empty() || clock::now() >= until) break;
    std::this_thread::sleep_for(std::min<clock::duration>(pause, until - clock::now()));
  }
  return left;
}

}  // namespace lockflight::cli
