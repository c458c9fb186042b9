// robust: any lock, made to survive the death of its holders, and of participants that stop. The
// lock inside is a *generation*: when a participant dies in it, another one replaces it by a new
// generation on fresh words, and all participants continue there. So the words of the lock inside
// are never repaired, and its code does not handle deaths. No participant waits for another one
// that does not hold.
//
// Source: lockflight. Each participant keeps a one-word record; the repairer reads it.
//
// Invariants:
// - A record says `acquiring` or `releasing` before its participant uses the words of an instance,
//   and the participant does so only if it sees the generation open afterwards. So a repairer that
//   has closed the generation and made all pass a fence sees every participant that is in it.
// - A participant holds from the compare-swap of its record from `acquiring` to `holding` or
//   `sharing`, to the store of `releasing`, whatever the generation. A repairer compare-swaps
//   `acquiring` to `evicted`; so of a repair and an acquire one fails.
// - A participant is in a generation while its record says `acquiring`, `releasing` or `evicted`.
//   No participant enters a generation that was replaced. An instance is made fresh when no living
//   participant is in a generation that used it; queue nodes that a participant has taken in a
//   generation and not given back are free when no participant is in that generation.
// - A holder of an earlier generation excludes others: bit 0 of `inherited` is set before the next
//   generation is open, and is cleared by a participant that has found no such holder.
// - A record of a dead participant is an unhandled death, and ends waits, unless it is idle or
//   acknowledged, or says `left` or `evicted` in a generation that is over. It becomes idle when
//   no participant is in its generation, and until then no new one gets the dead one's place (C46).
//
// Order and fairness bound: those of the lock inside, between deaths.
//
// Cost: what the lock inside costs, and 4 loads, 2 stores and a compare-swap of the own record to
// acquire, 1 load and 2 stores to release. A repair loads each record of each participant a few
// times.
#pragma once

#include <cstdint>

#include "lockflight/lock/concepts.hpp"
#include "lockflight/lock/robust/handle.hpp"
#include "lockflight/lock/robust/participant.hpp"
#include "lockflight/lock/robust/record.hpp"

namespace lockflight::lock {

/// On a machine of one node. A handle belongs to one participant. If a port operation throws, the
/// acquire has not happened or the release is complete: the handle holds nothing and can be used
/// again. If a call never returns, since the program has jumped out of it, the next acquire throws
/// not_returned, and the handle can be used again.
template <template <class> class Inside, rma::mortal_port Port>
class robust final : robust_handle<Inside, Port> {
  using base = robust_handle<Inside, Port>;
  using base::acquire, base::await_repairer, base::free_acknowledged, base::has_unhandled_death,
      base::is_ours, base::release, base::repair, base::with_record;
  using base::me_, base::place_, base::port_, base::token_, base::where_;
  using typename base::inside, typename base::repaired;

  static constexpr rma::deadline never_over{UINT64_MAX};

 public:
  static constexpr facts about = inside::about;
  using parameters = typename inside::parameters;
  using participant = robust_participant<Port>;
  static constexpr bool shares = lock::shared<inside>;
  using typename base::cells;

  robust(robust_participant<Port>& me, const cells& where, const parameters& set = {})
      : base(me, where, set) {
    rma::ensure(me.machine().nodes() == 1 && where.line.home == 0, "a robust lock has one node");
  }
  robust(const robust&) = delete;
  robust& operator=(const robust&) = delete;

  void lock() {
    if constexpr (Port::capabilities.interrupts)
      for (bool has = false; !has;) has = lock_unless_interrupted();
    else
      acquire(record::holding, rma::forever{}, [](inside& in) { return in.lock(), true; });
  }
  /// False if the caller's program has ended the wait (C45).
  [[nodiscard]] bool lock_unless_interrupted() {
    if constexpr (!Port::capabilities.interrupts) {
      return lock(), true;
    } else {
      return acquire(record::holding, never_over, [](inside& in) {
        if constexpr (can_time<inside>) return in.lock_until(never_over);
        return in.lock(), true;
      });
    }
  }
  [[nodiscard]] bool try_lock()
    requires can_try<inside>
  {
    return acquire(record::holding, port_.deadline_in(0), [](inside& in) { return in.try_lock(); });
  }
  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds)
    requires can_time<inside>
  {
    if (nanoseconds == 0) return try_lock();
    const rma::deadline until = port_.deadline_in(nanoseconds);
    return acquire(record::holding, until, [&](inside& in) { return in.lock_until(until); });
  }
  void unlock() {
    release([](inside& in) { return in.unlock(), true; });
  }

  void lock_shared()
    requires shares
  {
    if constexpr (Port::capabilities.interrupts)
      for (bool has = false; !has;) has = lock_shared_unless_interrupted();
    else
      acquire(record::sharing, rma::forever{}, [](inside& in) { return in.lock_shared(), true; });
  }
  [[nodiscard]] bool lock_shared_unless_interrupted()
    requires shares
  {
    if constexpr (!Port::capabilities.interrupts) {
      return lock_shared(), true;
    } else {
      return acquire(record::sharing, never_over, [](inside& in) {
        if constexpr (can_time_shared<inside>) return in.lock_shared_until(never_over);
        return in.lock_shared(), true;
      });
    }
  }
  [[nodiscard]] bool try_lock_shared()
    requires can_try_shared<inside>
  {
    return acquire(record::sharing, port_.deadline_in(0),
                   [](inside& in) { return in.try_lock_shared(); });
  }
  [[nodiscard]] bool try_lock_shared_within(std::uint64_t nanoseconds)
    requires can_time_shared<inside>
  {
    if (nanoseconds == 0) return try_lock_shared();
    const rma::deadline until = port_.deadline_in(nanoseconds);
    return acquire(record::sharing, until, [&](inside& in) { return in.lock_shared_until(until); });
  }
  void unlock_shared()
    requires shares
  {
    release([](inside& in) { return in.unlock_shared(), true; });
  }

  // ---- for a holder ----

  /// The fencing token of our last exclusive acquire: greater than that of any acquire before it.
  [[nodiscard]] std::uint64_t token() const { return token_; }
  /// True if a holder died, and no holder since then has called mark_consistent.
  [[nodiscard]] bool owner_died() { return port_.load(where_.died) != 0; }
  /// For the exclusive holder: the guarded data is consistent again.
  void mark_consistent() { port_.store(where_.died, 0); }
  /// For the exclusive holder: the guarded data is not consistent. Marks it as after a death.
  void abandon() { port_.store(where_.died, 1); }
  /// The number of our record that says that we hold the lock.
  [[nodiscard]] int place() const { return place_; }
  /// True if this handle holds the lock, in any way.
  [[nodiscard]] bool is_held() const { return place_ >= 0; }

  // ---- for code that ends participants ----

  /// Handles the deaths that concern this lock. Returns false if time was over first, because
  /// another participant has begun a repair and makes no progress.
  template <class Until = rma::forever>
  bool repair_if_needed(Until until = {}) {
    if (!has_unhandled_death()) return free_acknowledged(), true;
    return with_record([&] {
      while (has_unhandled_death())
        if (repair() == repaired::busy && !await_repairer(until)) return false;
      return true;
    });
  }

  /// Releases the lock for another participant of this process, `owner`, which holds it by the
  /// record `place` and whose handle no longer exists. For the next holder owner_died() is true.
  /// The owner takes its record back at a later acquire of its own.
  void abandon_for(rma::rank_t owner, int place) {
    const rma::cpu_cell at = me_.record_of(owner, place);
    const auto of = record::from(port_.load(at));
    if (!is_ours(of) || !of.holds()) return;
    static_cast<void>(with_record([&] {
      // If we die from here on, others find the generation in disorder, and replace it.
      base::announce(record::left, of.get(record::generation));
      if (of.get(record::phase) == record::holding) port_.store(where_.died, 1);
      const record gone = of.with(record::phase, record::acknowledged);
      // If it fails the owner has died, and a repairer has handled that.
      if (port_.cpu_compare_swap(at, of.bits(), gone.bits()) == of.bits())
        static_cast<void>(port_.cpu_fetch_add(where_.inherited, 2));
      if (base::present() == of.get(record::generation))
        static_cast<void>(repair(of.get(record::generation)));
      return true;
    }));
  }
};

}  // namespace lockflight::lock
