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

/// A candidate makes way for others for so long.
constexpr milliseconds makes_way_for{2'000};
/// A host that does not answer by then has no candidate that counts.
constexpr milliseconds hosts_answer_within_campaign{200};
/// A candidate that makes way asks again after that time.
constexpr milliseconds asks_again_after{20};

/// Others see the priority with which this thread waits, as long as this object exists.
class shown_priority {
 public:
  shown_priority(named_handle& of, int priority) : of_(of), is_shown_(priority != 0) {
    if (is_shown_) of_.set_priority(priority);
  }
  ~shown_priority() {
    if (is_shown_) of_.set_priority(0);
  }
  shown_priority(const shown_priority&) = delete;
  shown_priority& operator=(const shown_priority&) = delete;

 private:
  named_control of_;
  bool is_shown_;
};

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

// ---- who comes first ----

detail::precedence::precedence(int priority) : priority_(priority) {
  if (priority < 0 || priority > most_priority)
    throw domain_error(domain_error::reason::invalid, "priority " + std::to_string(priority) +
                                                          " of a candidate (accepted: 0 to " +
                                                          std::to_string(most_priority) + ")");
}

bool detail::precedence::makes_way(const domain& in, const named_handle& role,
                                   std::string_view own_value) {
  if (!is_preferred_to(role, own_value) && !is_behind(in, role)) return false;
  const auto now = clock::now();
  if (!makes_way_since_) makes_way_since_ = now;
  return now - *makes_way_since_ < makes_way_for;
}

/// True if the last leader has preferred another candidate. A new preference counts for its full
/// time.
bool detail::precedence::is_preferred_to(const named_handle& role, std::string_view own_value) {
  const published_value last = role.published();
  if (last.token == 0 || last.until != lasts::with_name || last.bytes == own_value) return false;
  if (last != std::exchange(preference_, last)) makes_way_since_.reset();
  return true;
}

/// True if a candidate of greater priority waits. One that is stopped is not waited for.
bool detail::precedence::is_behind(const domain& in, const named_handle& role) const {
  const auto users = in.users_of(role.name(), nullptr, hosts_answer_within_campaign);
  return std::ranges::any_of(users, [this](const lock_user& each) {
    return each.waits() && !each.dead && !each.stopped && each.priority > priority_;
  });
}

// ---- an election ----

election::election(const domain& in, std::string_view name, std::string value, int priority)
    : in_(in),
      role_(in, name),
      observer_(in, name),
      value_(std::move(value)),
      precedence_(priority) {
  detail::check_value(name, value_.size());
}

bool election::campaign(limit patience) {
  const std::uint64_t until_ns = shm::detail::ns_from_now(patience.nanoseconds());
  const auto left = [&] {
    if (patience.is_attempt() || patience.is_for_ever()) return patience;
    return limit::of_ns(std::max<std::uint64_t>(1, until_ns - std::min(until_ns, now_ns())));
  };
  if (role_.is_held() && !is_leader()) step_down();
  precedence_.begin();
  const shown_priority shown(role_, precedence_.priority());
  for (;;) {
    if (!role_.acquire(mode::exclusive, left())) return false;
    if (!precedence_.makes_way(in_, role_, value_)) break;
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
