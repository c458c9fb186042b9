// How a handle acquires and releases a robust lock: it enters a generation, becomes a holder, and
// leaves the generation, also if others die or evict it meanwhile.
//
// Source: lockflight; robust.hpp has the invariants.
#pragma once

#include <array>
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

template <template <class> class Inside, rma::mortal_port Port>
class robust_handle : protected guarded_waits<Port> {
  using base = guarded_waits<Port>;

 protected:
  using base::announce, base::await_open, base::await_repairer, base::free_acknowledged,
      base::has_unhandled_death, base::is_any_user_dead, base::is_ours, base::is_releasing_,
      base::line_, base::may_be_interrupted_, base::me_, base::never, base::place_, base::port_,
      base::record_with, base::repair, base::shares_, base::was_interrupted_, base::where_;
  using typename base::repaired;
  using inside = Inside<rma::interruptible<Port>>;
  using parameters = typename inside::parameters;
  static constexpr bool shares = lock::shared<inside>;

  using cells = robust_cells<inside>;

  robust_handle(robust_participant<Port>& me, const cells& where, const parameters& set)
      : base(me, where), inner_(where.inner), set_(set) {}
  ~robust_handle() = default;

  template <class Until, class Take>
  bool acquire(rma::word as, Until until, Take take) {
    if (place_ >= 0) [[unlikely]]
      undo();
    place_ = me_.take_record();
    before_ = me_.nodes_now();
    may_be_interrupted_ = std::is_same_v<Until, rma::deadline>;
    shares_ = as == record::sharing;
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
        if (!recover(how)) return false;
      }
      me_.note_nodes(place_, me_.nodes_since(before_).in_use);
      base::end_watch();
      if (as == record::holding) {
        token_ = port_.load(where_.token) + 1;
        port_.store(where_.token, token_);
      }
    } catch (...) {
      if (place_ >= 0) drop(me_.nodes_since(before_, place_));
      throw;
    }
    return true;
  }

  template <class Give>
  void release(Give give) {
    rma::ensure(place_ >= 0, "only a holder releases");
    may_be_interrupted_ = false;
    try {
      announce(record::releasing, line_.value);
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

  // With a record that names the lock and is in no generation.
  template <class Work>
  bool with_record(Work work) {
    rma::ensure(place_ < 0, "a holder does not repair");
    place_ = me_.take_record();
    try {
      announce(record::left, line_.value);
      const bool done = work();
      me_.give_back(std::exchange(place_, -1));
      return done;
    } catch (...) {
      me_.give_back(std::exchange(place_, -1));
      throw;
    }
  }

  rma::word token_ = 0;

 private:
  enum class outcome : std::uint8_t { had, not_had, interrupted, closed };

  // Makes us a holder. Fails if we were evicted.
  [[nodiscard, gnu::always_inline]] bool hold(rma::word as) {
    const rma::word before = record_with(record::acquiring, line_.value);
    return port_.cpu_compare_swap(me_.own_record(place_), before, record_with(as, line_.value)) ==
           before;
  }

  // Enters the open generation. Returns false if time is over before there is one.
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

  // Does nothing while the exception is being handled: the checker switches participants in
  // operations of the port, and the C++ run-time counts exceptions by thread.
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

  // For an acquire that has failed. Returns whether it is to be retried.
  [[nodiscard, gnu::noinline]] bool recover(outcome how) {
    base::end_watch();
    const rma::word ours = line_.value;
    if (how != outcome::interrupted && !is_any_user_dead())
      return give_up(ours, me_.nodes_since(before_));
    vacate(ours, me_.nodes_since(before_));
    if (how == outcome::interrupted) line_.value = never;  // the handle inside is of no use
    before_ = me_.nodes_now();
    // Time is over, and the generation is closed. If another participant repairs we do not wait.
    if (how == outcome::closed && repair() != repaired::over) return give_up(ours, {});
    // This participant or another one replaces the generation that we have left in disorder.
    if (base::present() == ours) static_cast<void>(repair(ours));
    free_acknowledged();
    if (was_interrupted_) return was_interrupted_ = false, give_up(ours, {});
    return true;
  }

  // Leaves the generation.
  void vacate(rma::word generation, node_sets left) {
    // Our posted operations must take effect before others use the words again.
    port_.flush();
    announce(record::left, generation);
    if ((left.in_use | left.abandoned) == 0) return;
    me_.give_back_when_out(std::exchange(place_, -1), left.in_use, left.abandoned);
    place_ = me_.take_record();
    announce(record::left, generation);
  }

  // Gives the record back. Always false.
  bool give_up(rma::word generation, node_sets left) {
    if ((left.in_use | left.abandoned) != 0) {
      announce(record::left, generation);
      me_.give_back_when_out(std::exchange(place_, -1), left.in_use, left.abandoned);
    } else {
      me_.give_back(std::exchange(place_, -1));
    }
    return false;
  }

  // An exception has ended the call, and may have left the generation in disorder.
  [[gnu::noinline]] void drop(node_sets left) {
    is_releasing_ = was_interrupted_ = false;
    const rma::word ours = std::exchange(line_.value, never);
    if (place_ < 0) return;
    try {
      announce(record::left, ours);
      // We may have held.
      count_out_of_inherited();
      if (base::present() == ours) static_cast<void>(repair(ours));
    } catch (...) {  // the memory is damaged or gone, and no participant uses these words any more
    }
    give_up(ours, left);
    base::end_watch();
  }

  // The record may say anything, also that we hold: the jump may have come just before the acquire
  // would have returned.
  [[noreturn, gnu::noinline]] void undo() {
    drop(me_.nodes_since(before_, place_));
    throw not_returned();
  }

  [[nodiscard]] node_sets nodes_held() {
    if (place_ < 0) return {};
    return {me_.nodes_of(place_) & me_.inside().taken(), 0};
  }

  // Our generation is over: no participant acquires the instance that we would release.
  [[gnu::noinline]] void release_inherited() {
    // Done while the record still says `releasing`, so that another participant handles our death
    // if we die before this.
    count_out_of_inherited();
    give_up(line_.value, nodes_held());
    free_acknowledged();
  }

  // This participant was evicted, or its release cannot go on. Does not wait for other ones.
  [[gnu::noinline]] void leave_in_disorder() {
    base::end_watch();
    const rma::word ours = std::exchange(line_.value, never);
    port_.flush();
    announce(record::left, ours);
    if (port_.load(where_.generation) == ours) static_cast<void>(repair(ours));
    give_up(ours, nodes_held());
    free_acknowledged();
  }

  void count_out_of_inherited() { static_cast<void>(port_.cpu_fetch_add(where_.inherited, 2)); }
  static void unlock_shared_of(inside& in) {
    if constexpr (shares) in.unlock_shared();
  }

  std::array<typename inside::cells, generation_cells::instances> inner_;
  parameters set_;
  std::optional<inside> inside_;  // of the generation that we entered last
  node_sets before_;              // when the last acquire began
};

}  // namespace lockflight::lock
