// Leaders: processes that stand for a role, of which one has it at a time, and others that want to
// know which one.
//
//   lockflight::election scheduler(lockflight::domain::open("etcd:jobs"), "scheduler",
//                                  "10.0.0.5:8080");
//   scheduler.campaign();                                    // returns when this process leads
//   std::stop_callback at_loss(scheduler.loss(), [&] { stop_scheduling(); });
//   schedule_jobs(scheduler.term());
//   scheduler.step_down();
//
//   lockflight::election watched(lockflight::domain::open("etcd:jobs"), "scheduler");
//   for (lockflight::leader now;;) connect_to((now = watched.await_change(now)).value);
//
// The role is the lock of that name in the domain, held exclusively, and the leader's value is what
// named_handle::publish() has published in that hold. So a lock's promises are those of the role:
// no two processes lead at once, terms are fencing tokens and grow, candidates are served in the
// order in which they came, a death is noticed, and a leader of a cluster that is about to lose its
// role is told before another one can have it. `lockflight who NAME` shows the leader and the
// candidates, and `lockflight run NAME` is a candidate, too.
//
// Cost: campaign() is an acquire, a publication and the watch of named_handle::loss(), step_down()
// a release and, in a cluster's domain, one more publication. An observer sleeps
// (named_handle::await_published()).
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <chrono>
#include "lockflight/domain.hpp"

namespace lockflight {

/// The leader of an election at one moment.
struct leader {
  std::string value = "";
  std::uint64_t term = 0;  ///< the token of its hold; 0: nobody leads
  explicit operator bool() const { return term != 0; }
  bool operator==(const leader&) const = default;
};

/// The greatest priority of a candidate; the usual one is 0.
constexpr int most_priority = 1'000;

namespace detail {
/// The rule by which a candidate that has got the role makes way for another one: for the one that
/// the last leader has preferred when it stepped down, and for those of greater priority. It does
/// so for two seconds at most, so that somebody leads if the other one does not come.
class precedence {
 public:
  /// Throws domain_error (invalid).
  explicit precedence(int priority);

  [[nodiscard]] int priority() const { return priority_; }
  /// For a leader that is about to step down in favour of the candidate with that value: publishes
  /// its preference. Throws as named_handle::publish().
  static void prefer(named_handle& role, std::string_view value);
  /// For the holder of the role: true if it is to make way. While it does, it goes on showing its
  /// priority (named_control::set_priority()). In a cluster's domain this is a read of etcd, and a
  /// question to the other hosts for 200 ms at most; if they do not answer within that limit, and
  /// at most a second, nobody is preferred.
  [[nodiscard]] bool makes_way(const domain& in, named_handle& role, std::string_view own_value,
                               limit patience);

 private:
  using clock = std::chrono::steady_clock;

  /// The value of the candidate that the last leader has preferred, if there is one.
  [[nodiscard]] std::optional<std::string> preference_of(named_handle& role, limit patience);
  [[nodiscard]] bool is_behind(const domain& in, const named_handle& role) const;

  int priority_;
  published_value preference_;  // the last one that was seen
  clock::time_point preferred_since_;
  std::optional<clock::time_point> behind_since_, last_behind_;
};
}  // namespace detail

/// A candidate, or an observer. The calls that make a leader and end it belong to one thread, as
/// those of a named_handle; leader_now() and await_change() belong to one thread, which may be
/// another one. All throw domain_error as the calls of named_handle do.
class election {
 public:
  /// `value` is what the leader publishes, at most most_value_bytes, such as its address. Different
  /// candidates should have different ones. When the role becomes free, candidates of a greater
  /// priority, 0 to most_priority, come before those of a lesser one, and equal ones in the order
  /// in which they came; a leader is not disturbed by a later candidate.
  election(const domain& in, std::string_view name, std::string value = "", int priority = 0);
  election(election&&) noexcept = default;
  election& operator=(election&&) noexcept = default;
  /// A leader steps down as if it had died.
  ~election() = default;

  /// For later campaigns. Throws domain_error (invalid).
  void set_priority(int priority) { precedence_ = detail::precedence(priority); }
  /// Waits until this candidate leads, and publishes its value. False if that did not come within
  /// the limit. It may be called again after a loss, which ends the term that was lost first. It
  /// makes way for the candidate that the last leader has preferred, and for those of greater
  /// priority that wait, for two seconds at most.
  bool campaign(limit patience = limit::for_ever());
  /// Ends the term. Throws domain_error (not_held) if this candidate does not lead. A term that was
  /// lost ends as by a death.
  void step_down();
  /// The same in favour of the candidate with that value. The others make way for it, for two
  /// seconds at most after each has seen it, so that somebody leads also if there is no such
  /// candidate. A preference comes before priorities. The term ends also if this throws because the
  /// preference could not be published.
  void step_down_for(std::string_view value);
  /// Changes the leader's value, which later terms have, too. Throws domain_error (not_held).
  void publish(std::string value);

  /// False once the term is lost. Reads a clock.
  [[nodiscard]] bool is_leader() const { return valid_for().count() != 0; }
  /// How long this candidate certainly leads if its host does not hear from the cluster again
  /// (named_handle::valid_for()); 0 if it does not lead.
  [[nodiscard]] std::chrono::nanoseconds valid_for() const { return role_.valid_for(); }
  /// The term of this candidate's leadership, present or last; 0: it has not led. Terms grow.
  [[nodiscard]] std::uint64_t term() const { return role_.token(); }
  /// For a leader: a token that is stopped when its term is lost (named_handle::loss()).
  [[nodiscard]] std::stop_token loss() { return role_.loss(); }

  /// The leader, as it is known now.
  [[nodiscard]] leader leader_now();
  /// Waits until the leader is another one than `seen`, or its value is, and returns it; after a
  /// term of zero until somebody leads. Returns `seen` if that does not come within the limit.
  /// Leaders that follow each other quickly may be seen as one change, never in another order.
  [[nodiscard]] leader await_change(const leader& seen, limit patience = limit::for_ever());

  [[nodiscard]] const std::string& name() const { return role_.name(); }
  [[nodiscard]] const std::string& value() const { return value_; }
  /// The handles behind the two sides, for programs that interrupt waits (named_control.hpp).
  [[nodiscard]] named_handle& role() { return role_; }
  [[nodiscard]] named_handle& observer() { return observer_; }

 private:
  [[nodiscard]] bool begins_to_lead(limit patience);
  void end_term(const std::optional<std::string_view>& preferred);

  domain in_;
  named_handle role_;
  named_handle observer_;
  std::string value_;
  detail::precedence precedence_;
};

}  // namespace lockflight
