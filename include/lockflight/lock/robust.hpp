// robust: any lock, made to outlive its holders, and participants that stop. The lock inside is a
// *generation*: when somebody dies in it, one participant replaces it by a generation on other,
// fresh words, and all go on there. So no lock's own words are ever repaired, and the lock inside
// knows nothing of deaths. No participant waits for another one that does not hold.
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
//   Nobody comes into a generation that was replaced. An instance is made fresh when no living
//   participant is in a generation that used it; the queue nodes that one has taken in a generation
//   and not given back are free when nobody is in that generation.
// - A holder of an earlier generation excludes others: bit 0 of `inherited` is set before the next
//   generation is open, and is cleared by a participant that has found no such holder.
// - A record of a dead participant that is neither idle nor buried is an unhandled death. A buried
//   one becomes idle when nobody is in its generation, and before that no participant takes the
//   dead one's place (C46).
//
// Order and fairness bound: those of the lock inside, between deaths.
//
// Cost: what the lock inside costs; beside that 4 loads, 2 stores and a compare-swap of the own
// record to acquire, 1 load and 2 stores to release. Repair: some loads of each record of each
// participant.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "lockflight/lock/concepts.hpp"
#include "lockflight/lock/robust/generation.hpp"
#include "lockflight/lock/robust/participant.hpp"
#include "lockflight/lock/robust/record.hpp"
#include "lockflight/lock/robust/waiting.hpp"

namespace lockflight::lock {

/// On a machine of one node. A handle belongs to one participant. Whatever comes out of a port
/// operation as an exception leaves an acquire or release that has not happened or is over: the
/// handle holds nothing and can be used again.
template <template <class> class Inside, rma::mortal_port Port>
class robust final : guarded_waits<Port> {
  using base = guarded_waits<Port>;
  using base::announce, base::await_open, base::await_repairer, base::free_buried,
      base::has_unhandled_death, base::is_any_user_dead, base::is_ours, base::never,
      base::record_with, base::repair;
  using base::is_releasing_, base::line_, base::may_be_interrupted_, base::me_, base::place_,
      base::port_, base::was_interrupted_, base::where_;
  using typename base::repaired;
  using inside = Inside<rma::interruptible<Port>>;
  static constexpr int instances = generation_cells::instances;

 public:
  static constexpr facts about = inside::about;
  using parameters = typename inside::parameters;
  using participant = robust_participant<Port>;
  static constexpr bool shares = lock::shared<inside>;

  /// This lock's words: two lines, then those of the instances; all homes are rank 0.
  struct cells : generation_cells {
    std::array<typename inside::cells, instances> inner;

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set) {
      cells made{};
      made.line = in.take<rma::plain_cell>(2 * rma::line_words);
      for (std::size_t i = 0; i < instances; ++i) {
        // What is taken next begins on a line.
        made.first[i] = (in.used() + rma::line_words - 1) / rma::line_words * rma::line_words;
        made.inner[i] = inside::cells::place(in, machine, set, made.line.home);
        made.end[i] = in.used();
      }
      return made;
    }
  };

  robust(robust_participant<Port>& me, const cells& where, const parameters& set = {})
      : base(me, where), inner_(where.inner), set_(set) {
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
      constexpr rma::deadline never_over{UINT64_MAX};
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
      constexpr rma::deadline never_over{UINT64_MAX};
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
  /// Whether a holder died, and no holder since then has called mark_consistent.
  [[nodiscard]] bool owner_died() { return port_.load(where_.died) != 0; }
  /// The exclusive holder has put right what is guarded.
  void mark_consistent() { port_.store(where_.died, 0); }
  /// The exclusive holder will not put right what is guarded: marks it inconsistent, as after a
  /// death.
  void abandon() { port_.store(where_.died, 1); }
  /// Which of our records says that we hold it.
  [[nodiscard]] int place() const { return place_; }
  /// Whether this handle holds the lock, in any way.
  [[nodiscard]] bool is_held() const { return place_ >= 0; }

  // ---- for code that ends participants ----

  /// Deals with the deaths that concern this lock. False if time was over first, because another
  /// participant that repairs does not go on.
  template <class Until = rma::forever>
  bool repair_if_needed(Until until = {}) {
    if (!has_unhandled_death()) return free_buried(), true;
    return with_record([&] {
      while (has_unhandled_death())
        if (repair() == repaired::busy && !await_repairer(until)) return false;
      return true;
    });
  }

  /// For another participant of this process that holds with that record of its own, and whose
  /// handle is gone: releases it, and the next holder is told as of a death. The owner takes the
  /// record back at a later acquire of its own.
  template <class Until = rma::forever>
  bool abandon_for(rma::rank_t owner, int place, Until until = {}) {
    const rma::cpu_cell at = me_.record_of(owner, place);
    const auto of = record::from(port_.load(at));
    if (!is_ours(of) || !of.holds()) return true;
    return with_record([&] {
      if (of.get(record::phase) == record::holding) port_.store(where_.died, 1);
      const record gone = of.with(record::phase, record::buried);
      // If it fails the owner has died, and a repairer has dealt with it.
      if (port_.cpu_compare_swap(at, of.bits(), gone.bits()) == of.bits())
        static_cast<void>(port_.cpu_fetch_add(where_.inherited, 2));
      while (port_.load(where_.generation) == of.get(record::generation))
        if (repair(of.get(record::generation)) == repaired::busy && !await_repairer(until))
          return false;
      return true;
    });
  }

 private:
  enum class outcome : std::uint8_t { had, not_had, interrupted, closed };

  /// Queue nodes, a bit each.
  struct nodes {
    std::uint32_t in_use = 0, abandoned = 0;
  };
  [[nodiscard]] nodes nodes_now() { return {me_.inside().taken(), me_.inside().abandoned()}; }
  [[nodiscard]] nodes nodes_since(nodes before) {
    return {me_.inside().taken() & ~before.in_use, me_.inside().abandoned() & ~before.abandoned};
  }

  template <class Until, class Take>
  bool acquire(rma::word as, Until until, Take take) {
    rma::ensure(place_ < 0, "a robust lock is not recursive");
    place_ = me_.take_record();
    nodes before = nodes_now();
    may_be_interrupted_ = std::is_same_v<Until, rma::deadline>;
    try {
      while (true) {
        outcome how = outcome::closed;
        if (enter(until)) [[likely]] {
          how = call(false, [&](inside& in) {
            if (!take(in)) return false;
            if (await_inherited(as, until)) return true;
            as == record::holding ? in.unlock() : unlock_shared_of(in);
            return false;
          });
          if (how == outcome::had) [[likely]] {
            if (hold(as)) break;
            how = outcome::interrupted;
          }
        }
        if (!recover(how, until, before)) return false;
      }
      const nodes ours = nodes_since(before);
      me_.note_nodes(place_, ours.in_use);
      base::end_watch();
    } catch (...) {
      drop(nodes_since(before));
      throw;
    }
    if (as == record::holding) {
      token_ = port_.load(where_.token) + 1;
      port_.store(where_.token, token_);
    }
    return true;
  }

  // The moment of an acquire. It fails if we were evicted.
  [[nodiscard, gnu::always_inline]] bool hold(rma::word as) {
    const rma::word before = record_with(record::acquiring, line_.value);
    return port_.cpu_compare_swap(me_.own_record(place_), before, record_with(as, line_.value)) ==
           before;
  }

  // Into the open generation. False if time is over before there is one.
  template <class Until>
  [[nodiscard, gnu::always_inline]] bool enter(Until until) {
    while (true) {
      const rma::word now = port_.load(where_.generation);
      if (is_closed(now)) [[unlikely]] {
        announce(record::left, line_.value);
        if (!await_open(until)) return false;
        continue;
      }
      announce(record::acquiring, now);
      if (port_.load(where_.generation) != now) [[unlikely]] {
        announce(record::left, line_.value);
        continue;
      }
      if (now != line_.value) [[unlikely]]
        renew(now);
      return true;
    }
  }

  [[gnu::noinline]] void renew(rma::word generation) {
    const rma::word in = generation_word::from(generation).get(generation_word::instance);
    inside_.emplace(me_.inside(), inner_[static_cast<std::size_t>(in)], set_);
    line_.value = generation;
  }

  // Nothing of ours happens while the exception lives: the checker puts participants aside in
  // operations of the port, and the run-time counts exceptions by thread.
  template <class Call>
  [[nodiscard, gnu::always_inline]] outcome call(bool is_release, Call what) {
    is_releasing_ = is_release;
    me_.waits().guard_with(*this);
    try {
      return what(*inside_) ? outcome::had : outcome::not_had;
    } catch (const rma::interrupted&) {
    }
    return outcome::interrupted;
  }

  // Waits for the holders of earlier generations. We are still acquiring: if we die now, or are
  // evicted, we have not held.
  template <class Until>
  [[nodiscard, gnu::always_inline]] bool await_inherited(rma::word as, Until until) {
    const rma::word now = port_.load(where_.inherited);
    if ((now & 1) == 0) [[likely]]
      return true;
    return await_holders(as, until, now);
  }

  template <class Until>
  [[nodiscard, gnu::noinline]] bool await_holders(rma::word as, Until until, rma::word now) {
    while ((now & 1) != 0) {
      // The word was read before the records: a holder that releases changes its record first.
      if (!base::is_anyone_holding(as == record::sharing, line_.value)) {
        clear_inherited(as, now);
        return true;
      }
      if (!rma::await(me_.waits(), where_.inherited, rma::differs_from(now), until, now))
        return false;
    }
    return true;
  }

  void clear_inherited(rma::word as, rma::word now) {
    if (as == record::sharing && base::is_anyone_holding(false, line_.value)) return;
    // If our generation is not over yet, no repairer had set the bit for those that hold in this
    // generation when we read `now`; and if it sets it after that, the compare-swap fails.
    if (port_.load(where_.generation) == line_.value)
      static_cast<void>(port_.cpu_compare_swap(where_.inherited, now, now - 1));
  }

  // An acquire has failed. True if it is to be tried again; if not, it is over.
  template <class Until>
  [[nodiscard, gnu::noinline]] bool recover(outcome how, Until until, nodes& before) {
    base::end_watch();
    const rma::word ours = line_.value;
    if (how != outcome::interrupted && !is_any_user_dead()) return give_up(nodes_since(before));
    if (how == outcome::interrupted) line_.value = never;  // the handle inside is of no use
    vacate(ours, nodes_since(before));
    before = nodes_now();
    // Time is over, and the generation is closed. If another participant repairs we do not wait.
    if (how == outcome::closed && repair() != repaired::over) return give_up({});
    // What we have left in disorder is replaced by us, or by another participant.
    while (port_.load(where_.generation) == ours)
      if (repair(ours) == repaired::busy && !await_repairer(until)) return give_up({});
    free_buried();
    if (was_interrupted_) return was_interrupted_ = false, give_up({});
    return true;
  }

  // Out of the generation.
  void vacate(rma::word generation, nodes left) {
    // What we had posted takes effect before others can use the words again.
    port_.flush();
    announce(record::left, generation);
    if ((left.in_use | left.abandoned) == 0) return;
    me_.give_back_when_out(std::exchange(place_, -1), left.in_use, left.abandoned);
    place_ = me_.take_record();
    announce(record::left, generation);
  }

  bool give_up(nodes left) {
    if ((left.in_use | left.abandoned) != 0) {
      announce(record::left, line_.value);
      me_.give_back_when_out(std::exchange(place_, -1), left.in_use, left.abandoned);
    } else {
      me_.give_back(std::exchange(place_, -1));
    }
    return false;
  }

  // An exception has ended the call. The generation may be in disorder: a waiter finds that out.
  [[gnu::noinline]] void drop(nodes left) {
    is_releasing_ = was_interrupted_ = false;
    if (place_ >= 0) static_cast<void>(give_up(left));
    line_.value = never;
  }

  template <class Give>
  void release(Give give) {
    rma::ensure(place_ >= 0, "only a holder releases");
    announce(record::releasing, line_.value);
    may_be_interrupted_ = false;
    try {
      if (port_.load(where_.generation) != line_.value) [[unlikely]]
        return release_inherited();
      if (call(true, give) == outcome::interrupted) [[unlikely]]
        return leave_in_disorder();
      base::end_watch();
    } catch (...) {
      drop(nodes_held());
      throw;
    }
    me_.give_back(std::exchange(place_, -1));
  }

  [[nodiscard]] nodes nodes_held() { return {me_.nodes_of(place_) & me_.inside().taken(), 0}; }

  // Our generation is over: nobody acquires what we would release.
  [[gnu::noinline]] void release_inherited() {
    // While the record still says `releasing`: if we die before this, somebody deals with that.
    static_cast<void>(port_.cpu_fetch_add(where_.inherited, 2));
    static_cast<void>(give_up(nodes_held()));
    free_buried();
  }

  // We were evicted, or the release cannot go on. Nobody is waited for: if another participant has
  // the right to repair, those that come find the disorder as we did.
  [[gnu::noinline]] void leave_in_disorder() {
    base::end_watch();
    const rma::word ours = std::exchange(line_.value, never);
    port_.flush();
    announce(record::left, ours);
    if (port_.load(where_.generation) == ours) static_cast<void>(repair(ours));
    const nodes left = nodes_held();
    if (left.in_use != 0)
      me_.give_back_when_out(std::exchange(place_, -1), left.in_use, 0);
    else
      me_.give_back(std::exchange(place_, -1));
    free_buried();
  }

  // With a record that names the lock and is in no generation.
  template <class Work>
  bool with_record(Work work) {
    rma::ensure(place_ < 0, "a holder does not repair");
    place_ = me_.take_record();
    announce(record::left, line_.value);
    try {
      const bool done = work();
      me_.give_back(std::exchange(place_, -1));
      return done;
    } catch (...) {
      me_.give_back(std::exchange(place_, -1));
      throw;
    }
  }

  static void unlock_shared_of(inside& in) {
    if constexpr (shares) in.unlock_shared();
  }

  std::array<typename inside::cells, instances> inner_;
  parameters set_;
  std::optional<inside> inside_;  // of the generation that we entered last
  rma::word token_ = 0;
};

}  // namespace lockflight::lock
