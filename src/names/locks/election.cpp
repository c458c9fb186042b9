#include "lockflight/election.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "fabric/shm/pause.hpp"
#include "lockflight/named_control.hpp"
#include "names/file/text.hpp"
#include "names/locks/value.hpp"

namespace lockflight {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// For so long the candidates make way for the one that a leader has preferred.
constexpr milliseconds preference_lasts{2'000};
/// A candidate that makes way asks again after that time.
constexpr milliseconds asks_again_after{20};

leader leader_of(const published_value& found) {
  // A value that outlives its hold is a preference of the leader that has stepped down.
  if (found.token == 0 || found.until != lasts::with_hold) return {};
  return {found.bytes, found.token};
}

[[noreturn]] void no_answer(const std::string& name, const std::string& why) {
  throw domain_error(domain_error::reason::system,
                     "election " + detail::shown(name) + ": its value in etcd: " + why);
}

}  // namespace

election::election(const domain& in, std::string_view name, std::string value)
    : role_(in, name), observer_(in, name), value_(std::move(value)) {
  detail::check_value(name, value_.size());
}

bool election::campaign(limit patience) {
  const std::uint64_t until_ns = shm::detail::ns_from_now(patience.nanoseconds());
  const auto left = [&] {
    if (patience.is_attempt() || patience.is_for_ever()) return patience;
    return limit::of_ns(std::max<std::uint64_t>(1, until_ns - std::min(until_ns, now_ns())));
  };
  if (role_.is_held() && !is_leader()) step_down();
  for (;;) {
    if (!role_.acquire(mode::exclusive, left())) return false;
    if (!preference_.makes_way(role_, value_)) break;
    role_.release();
    if (patience.is_attempt() || now_ns() >= until_ns) return false;
    std::this_thread::sleep_for(asks_again_after);
  }
  try {
    named_control control(role_);
    if (control.publish(value_, lasts::with_hold, left())) return true;
    const std::string why = control.missing_answer();
    role_.release();
    if (patience.is_for_ever()) no_answer(name(), why);
    return false;
  } catch (...) {
    if (role_.is_held()) role_.release();
    throw;
  }
}

bool detail::preference::makes_way(const named_handle& role, std::string_view own_value) {
  const published_value now = role.published();
  if (now.token == 0 || now.until != lasts::with_name || now.bytes == own_value) return false;
  if (now != std::exchange(last_, now)) since_ = clock::now();
  return clock::now() - since_ < preference_lasts;
}

void election::step_down() {
  try {
    if (is_leader()) role_.withdraw();
  } catch (const domain_error& e) {
    // Without an answer of etcd the agent withdraws the value, once the hold has ended.
    if (e.why != domain_error::reason::system) throw;
  }
  try {
    role_.release(if_lost::throws);
  } catch (const lost_error&) {  // the caller asks for the end of the term
  }
}

void election::step_down_for(std::string_view value) {
  role_.publish(value, lasts::with_name);
  role_.release();
}

void election::publish(std::string value) {
  role_.publish(value, lasts::with_hold);
  value_ = std::move(value);
}

leader election::leader_now() { return leader_of(observer_.published()); }

leader election::await_change(const leader& seen, limit patience) {
  const std::uint64_t until_ns = shm::detail::ns_from_now(patience.nanoseconds());
  published_value last{seen.value, seen.term, lasts::with_hold};
  for (;;) {
    const auto left =
        patience.is_attempt() || patience.is_for_ever()
            ? patience
            : limit::of_ns(std::max<std::uint64_t>(1, until_ns - std::min(until_ns, now_ns())));
    published_value now = observer_.await_published(last, left);
    const leader found = leader_of(now);
    // Nobody leads, as before: the value was withdrawn, or is a preference.
    if (found != seen) return found;
    if (patience.is_attempt() || now_ns() >= until_ns) return seen;
    last = std::move(now);
  }
}

}  // namespace lockflight
