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

/// The beginning of a value that is a preference, and no result of work.
constexpr std::string_view preference_mark = "lockflight prefers ";
/// Candidates and leaders that step down wait no longer for an etcd that does not answer.
constexpr limit etcd_answers_campaign_within = limit::of_ns(1'000'000'000);
/// A candidate makes way for others for so long.
constexpr milliseconds makes_way_for{2'000};
/// After that time without a campaign, a candidate has not made way yet.
constexpr std::chrono::minutes forgets_after{1};
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
  // A value that outlives its hold is a preference of the last leader, or the result of work.
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

bool detail::precedence::makes_way(const domain& in, named_handle& role, std::string_view own_value,
                                   limit patience) {
  const auto preferred = preference_of(role, patience);
  const auto now = clock::now();
  if (preferred && *preferred == own_value) return false;
  if (preferred && now - preferred_since_ < makes_way_for) return true;
  if (!is_behind(in, role)) {
    behind_since_.reset();
    return false;
  }
  // A candidate that has not campaigned for long begins anew.
  if (!behind_since_ || now - *last_behind_ > forgets_after) behind_since_ = now;
  last_behind_ = now;
  return now - *behind_since_ < makes_way_for;
}

void detail::precedence::prefer(named_handle& role, std::string_view value) {
  role.publish(std::string(preference_mark) + std::string(value), lasts::with_name);
}

std::optional<std::string> detail::precedence::preference_of(named_handle& role, limit patience) {
  const limit at_most =
      limit::of_ns(std::min(patience.nanoseconds(), etcd_answers_campaign_within.nanoseconds()));
  std::optional<published_value> last;
  try {
    last = named_control(role).published(at_most);
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::system) throw;  // without an answer nobody is preferred
  }
  const bool is_one = last && last->token != 0 && last->until == lasts::with_name &&
                      last->bytes.starts_with(preference_mark);
  if (!is_one) return std::nullopt;
  if (*last != std::exchange(preference_, *last)) preferred_since_ = clock::now();
  return last->bytes.substr(preference_mark.size());
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
  const shown_priority shown(role_, precedence_.priority());
  for (;;) {
    if (!role_.acquire(mode::exclusive, left())) return false;
    try {
      if (!precedence_.makes_way(in_, role_, value_, left())) return begins_to_lead(left());
    } catch (...) {  // a candidate that does not lead leaves the role to others
      if (role_.is_held()) role_.release();
      throw;
    }
    role_.release();
    if (patience.is_attempt() || now_ns() >= until_ns) return false;
    std::this_thread::sleep_for(asks_again_after);
  }
}

/// For the holder of the role: publishes the value. False, and the role is free, if etcd did not
/// answer in time.
bool election::begins_to_lead(limit patience) {
  named_control control(role_);
  if (control.publish(value_, lasts::with_hold, patience)) {
    static_cast<void>(role_.loss());  // is_leader() is false once the domain was removed, too
    return true;
  }
  if (patience.is_for_ever()) no_answer(name(), control.missing_answer());
  role_.release();
  return false;
}

void election::step_down() { end_term(std::nullopt); }
void election::step_down_for(std::string_view value) { end_term(value); }

/// Ends the term, whatever happens. Without an answer of etcd the agent withdraws the value, once
/// the hold has ended; a preference that could not be published is reported then.
void election::end_term(const std::optional<std::string_view>& preferred) {
  std::exception_ptr failed;
  try {
    if (is_leader() && preferred)
      detail::precedence::prefer(role_, *preferred);
    else if (is_leader())
      static_cast<void>(named_control(role_).withdraw(etcd_answers_campaign_within));
  } catch (const domain_error& e) {
    const bool is_no_matter = e.why == domain_error::reason::not_held ||  // it was lost meanwhile
                              (!preferred && e.why == domain_error::reason::system);
    if (!is_no_matter) failed = std::current_exception();
  }
  try {
    role_.release(if_lost::throws);
  } catch (const lost_error&) {  // the caller asks for the end of the term
  }
  if (failed) std::rethrow_exception(failed);
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
