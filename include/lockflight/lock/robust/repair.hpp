// The repair of a robust lock: replaces a generation in which a participant died, or that was left
// in disorder.
//
// Source: lockflight; robust.hpp has the invariants.
#pragma once

#include <cstdint>
#include <type_traits>

#include "lockflight/lock/robust/users.hpp"

namespace lockflight::lock {

/// The steps of a participant in a repair.
template <rma::mortal_port Port>
class generations : protected lock_users<Port> {
  using base = lock_users<Port>;

 protected:
  using base::is_ours, base::me_, base::never, base::port_, base::where_;
  using base::lock_users;

  enum class repaired : std::uint8_t {
    over,         // there was nothing to do, or the next generation is open
    busy,         // another participant has the right to repair
    no_instance,  // living participants are in every instance; the generation is closed
  };

  // Replaces the generation if a participant died in it, if it was closed before, or if it is
  // `in_disorder`, unless another participant has done so. Does not wait: if another participant
  // has the right, a generation in disorder is at least closed. Our record names the lock and no
  // generation, so our own death during a repair counts for this lock too.
  [[gnu::noinline]] repaired repair(rma::word in_disorder = never) {
    const repaired how = repair_undisturbed(in_disorder);
    if (how == repaired::busy && in_disorder == never) return how;
    base::wake_users();
    if (how == repaired::over) base::free_acknowledged();
    return how;
  }

  // Waits until the participant that has the right to repair has done so, or has died. Returns
  // false if time is over before.
  template <class Until>
  [[nodiscard, gnu::noinline]] bool await_repairer(Until until) {
    const rma::word deaths = port_.deaths();
    const rma::word generation = port_.load(where_.generation);
    const rma::word now = port_.load(where_.repairer);
    if (now == 0 || port_.is_dead(rank_of(now))) return true;
    // Waits for the right, not for the generation: a repairer that gives up leaves the generation
    // closed.
    const rma::lifeline line{where_.line, generation, deaths};
    const auto is_given_back = rma::differs_from(now);
    if constexpr (std::is_same_v<Until, rma::deadline>) {
      const rma::word then =
          port_.await_until_or_death(where_.repairer, is_given_back, until, line);
      if (is_given_back(then)) return true;
      port_.examine(rank_of(now));
      return !port_.is_over(until);
    } else {
      if (!is_given_back(port_.await_or_death(where_.repairer, is_given_back, line)))
        port_.examine(rank_of(now));
      return true;
    }
  }

  // Waits until the closed generation has been replaced, or replaces it if no other participant
  // does. Returns false if time is over before.
  template <class Until>
  [[nodiscard, gnu::noinline]] bool await_open(Until until) {
    while (is_closed(base::present())) {
      switch (repair()) {
        case repaired::over:
          break;
        case repaired::busy:
          if (!await_repairer(until)) return false;
          break;
        case repaired::no_instance:
          // Running participants leave as soon as they notice that their generation is over. Dead
          // ones that no participant has examined yet still count as being in it.
          base::examine_users();
          if (rma::is_over(port_, until)) return false;
          port_.pause(1'000'000);
          break;
      }
    }
    return true;
  }

 private:
  [[nodiscard]] static rma::rank_t rank_of(rma::word repairer) {
    return static_cast<rma::rank_t>(static_cast<std::uint32_t>(repairer) - 1);
  }

  // An object that holds signals back while it exists, if the port has one.
  [[nodiscard]] static auto undisturbed_by_signals() {
    if constexpr (requires { Port::undisturbed(); })
      return Port::undisturbed();
    else
      return 0;
  }

  [[nodiscard]] repaired repair_undisturbed(rma::word in_disorder) {
    // Other participants wait until this repair has finished, so no signal may stop us meanwhile.
    [[maybe_unused]] const auto undisturbed = undisturbed_by_signals();
    const taken right = take_the_right();
    if (right == taken::no) {
      if (in_disorder != never) close(in_disorder);
      return repaired::busy;
    }
    repaired how = repaired::over;
    try {
      rma::word generation = port_.load(where_.generation);
      rma::word known_deaths = never;  // a count from before we had the right may be out of date
      // A closed generation is one whose repairer died or gave up, or that was left in disorder.
      was_sound_ = right == taken::yes && !is_closed(generation);
      if (!was_sound_ || generation == in_disorder || base::has_unhandled_death(known_deaths))
        how = replace(generation_word::from(generation));
    } catch (...) {
      give_back_the_right();
      throw;
    }
    give_back_the_right();
    return how;
  }

  // The participant that has the right to repair may find nothing to do. All others find a closed
  // generation, and the first of them replaces it.
  void close(rma::word in_disorder) {
    const auto open = generation_word::from(in_disorder);
    static_cast<void>(port_.cpu_compare_swap(where_.generation, in_disorder,
                                             open.with(generation_word::closed).bits()));
  }

  enum class taken : std::uint8_t { no, yes, from_the_dead };

  [[nodiscard]] taken take_the_right() {
    const rma::word generation = port_.load(where_.generation);
    const rma::word now = port_.load(where_.repairer);
    if (now != 0 && !port_.is_dead(rank_of(now))) return taken::no;
    // With the generation: the next owner of a dead repairer's place cannot write the same word,
    // since the participant that takes the right from the dead one replaces the generation, and the
    // dead one's record stays until then (is_gone). So the compare-swap never takes the right from
    // the living.
    const rma::word ours = generation << 32 | (static_cast<rma::word>(me_.rank()) + 1);
    if (port_.cpu_compare_swap(where_.repairer, now, ours) != now) return taken::no;
    return now == 0 ? taken::yes : taken::from_the_dead;
  }
  void give_back_the_right() {
    try {
      port_.store(where_.repairer, 0);
    } catch (...) {  // once more: the others would wait for a participant that lives
      port_.store(where_.repairer, 0);
      throw;
    }
    port_.fence();  // before we look for those that may wait for it
  }

  [[nodiscard]] repaired replace(generation_word old) {
    const rma::word closed = old.with(generation_word::closed).bits();
    if (old.bits() != closed) port_.store(where_.generation, closed);
    // A participant that writes its record after this sees the generation closed (announce), and
    // what one has written before it we see.
    if constexpr (Port::capabilities.node_fence)
      port_.fence_node();
    else
      port_.fence();

    found_left_ = found_dead_ = false;
    unsigned occupied = 0;
    bool is_held = false;
    static_cast<void>(me_.any_record([&](rma::rank_t r, rma::cpu_cell at) {
      const record of = survey(r, at);
      if (of.is_in())
        occupied |=
            1u << generation_word::from(of.get(record::generation)).get(generation_word::instance);
      is_held = is_held || of.holds();
      return false;
    }));
    // Before the next generation is open: its holders read this.
    if (is_held) expect_holders();
    const int instance = free_instance(occupied, old);
    if (instance < 0) return repaired::no_instance;
    make_fresh(instance);
    port_.store(where_.generation, old.next(static_cast<rma::word>(instance)).bits());
    if constexpr (requires { port_.note_repair(where_.line, true); })
      port_.note_repair(where_.line, was_sound_ && found_left_ && !found_dead_);
    return repaired::over;
  }

  // Decides about one record: its participant continues to hold, is evicted, or is dead. Does not
  // wait. The result is all zero if the record no longer matters.
  [[nodiscard]] record survey(rma::rank_t r, rma::cpu_cell at) {
    while (true) {
      // Read before the record: a dead participant writes no more. One read of the record decides:
      // a participant that dies after it is a death that this repair does not know.
      const bool is_dead = port_.is_dead(r);
      const auto of = record::from(port_.load(at));
      if (!is_ours(of) || of.get(record::phase) == record::acknowledged) return {};
      if (is_dead) {
        // Asked once more: its place may have been taken before we read the record, which then is
        // that of a living participant.
        if (!port_.is_dead(r)) continue;
        acknowledge_death(r, at, of);
        return {};
      }
      const rma::word phase = of.get(record::phase);
      if (phase != record::acquiring && phase != record::releasing) return of;
      // With this an acquire has failed, though its participant may have got as far as the moment
      // before it holds. By compare-swap: if the participant holds instead, we read that.
      const record evicted = of.with(record::phase, record::evicted);
      if (port_.cpu_compare_swap(at, of.bits(), evicted.bits()) == of.bits()) return evicted;
    }
  }

  void acknowledge_death(rma::rank_t r, rma::cpu_cell at, record of) {
    if constexpr (requires { port_.had_left(r); })
      (port_.had_left(r) ? found_left_ : found_dead_) = true;
    // Before the record changes: if we die in between, the next repairer does this again.
    if (of.get(record::phase) == record::holding && !had_finished(r)) port_.store(where_.died, 1);
    port_.acknowledge_death(r);
    static_cast<void>(
        port_.cpu_compare_swap(at, of.bits(), of.with(record::phase, record::acknowledged).bits()));
  }

  // True if a dead holder had said that its death is to count as a release, if the port has that.
  [[nodiscard]] bool had_finished(rma::rank_t r) const {
    if constexpr (requires { port_.had_finished(r); })
      return port_.had_finished(r);
    else
      return false;
  }

  // There is a holder from an earlier generation. With a new number, so that a participant of an
  // earlier generation, which read the word before, does not clear the bit.
  void expect_holders() {
    rma::word now = port_.load(where_.inherited);
    while (true) {
      const rma::word before = port_.cpu_compare_swap(where_.inherited, now, (now + 2) | 1);
      if (before == now) return;
      now = before;
    }
  }

  // Returns an instance that no living participant is in. Not the present one if possible: the
  // participants evicted from it have not left yet.
  [[nodiscard]] static int free_instance(unsigned occupied, generation_word present) {
    const int last = static_cast<int>(present.get(generation_word::instance));
    for (int i = 1; i <= generation_cells::instances; ++i)
      if (const int one = (last + i) % generation_cells::instances; (occupied & 1u << one) == 0)
        return one;
    return -1;
  }

  // No other participant uses its words or can still write to them.
  void make_fresh(int instance) {
    const rma::rank_t ranks = rma::words_at_home_only<Port> ? 1 : me_.machine().ranks();
    for (rma::rank_t r = 0; r < ranks; ++r)
      for (std::uint32_t i = where_.instance_begin(instance); i < where_.instance_end(instance);
           ++i)
        if (port_.load(rma::plain_cell{r, i}) != 0) port_.store(rma::plain_cell{r, i}, 0);
  }

  // For display only: a generation that is replaced because participants have left by themselves,
  // and have left queue nodes in it, did not need a repair.
  bool was_sound_ = false, found_left_ = false, found_dead_ = false;
};

}  // namespace lockflight::lock
