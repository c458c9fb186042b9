// The generations of a robust lock: their participants, and the repair that replaces one in which
// somebody died.
//
// Source: lockflight; robust.hpp has the invariants.
#pragma once

#include <cstdint>
#include <type_traits>

#include "lockflight/lock/robust/participant.hpp"
#include "lockflight/lock/robust/record.hpp"
#include "lockflight/rma/interruptible.hpp"

namespace lockflight::lock {

/// The words of a robust lock that outlive its generations: one line at rank 0.
struct generation_cells {
  rma::plain_cell line;
  std::uint32_t end = 0;  ///< the lock inside has the words from the line to here, on all ranks

  /// Even: open. Odd: somebody repairs. Written by the repairer alone.
  [[nodiscard]] rma::plain_cell generation() const { return line; }
  /// How many exclusive acquires there were. Written by the exclusive holder.
  [[nodiscard]] rma::plain_cell token() const { return line + 1; }
  /// Not 0: a holder died, and what it guarded may be half done.
  [[nodiscard]] rma::plain_cell died() const { return line + 2; }
  /// Those that hold from earlier generations: how many share, and `exclusively`.
  [[nodiscard]] rma::cpu_cell inherited() const { return {line.home, line.index + 3}; }
  /// 1 + the rank that has the right to repair, and the generation then, or 0.
  [[nodiscard]] rma::cpu_cell repairer() const { return {line.home, line.index + 4}; }
  /// Words for the code that makes locks, 3 of them.
  [[nodiscard]] rma::plain_cell beside() const { return line + 5; }
};

/// The same, as a participant's port has resolved them.
template <rma::port Port>
struct resolved_generation_cells : generation_cells {
  resolved_generation_cells(const generation_cells& of, Port& p)
      : generation_cells(of),
        generation(rma::resolve(p, of.generation())),
        token(rma::resolve(p, of.token())),
        died(rma::resolve(p, of.died())),
        inherited(rma::resolve(p, of.inherited())),
        repairer(rma::resolve(p, of.repairer())) {}

  rma::resolved<Port, rma::plain_cell> generation, token, died;
  rma::resolved<Port, rma::cpu_cell> inherited, repairer;
};

/// A participant's side of them.
template <rma::mortal_port Port>
class generations : protected rma::mourner {
 protected:
  static constexpr rma::word exclusively = rma::word{1} << 32;  // of `inherited`
  static constexpr rma::word never = ~rma::word{0};

  generations(robust_participant<Port>& me, const generation_cells& where)
      : mourner({where.generation(), 1, never}),  // no generation is entered as 1
        me_(me),
        port_(me.port()),
        where_{where, me.port()} {}
  ~generations() = default;

  [[nodiscard]] static bool is_closed(rma::word generation) { return generation % 2 != 0; }
  [[nodiscard]] rma::word id() const { return where_.line.index / rma::line_words; }
  [[nodiscard]] bool is_ours(record of) const {
    return of.get(record::phase) != record::idle && of.get(record::lock) == id();
  }

  // Always inlined, as all that an uncontended acquire goes through: compilers stop where a lock is
  // large.
  [[gnu::always_inline]] void announce(rma::word phase, rma::word generation) {
    port_.store(me_.own_record(place_), record{}
                                            .with(record::phase, phase)
                                            .with(record::generation, generation)
                                            .with(record::lock, id())
                                            .bits());
    // Before we read the generation. Where a repairer can make all pass a fence it does (C40).
    if constexpr (!Port::capabilities.node_fence) port_.fence();
  }

  // Whether a death concerns this lock.
  [[nodiscard]] bool has_lost_one() override {
    const rma::word deaths = port_.deaths();
    if (deaths == line_.deaths) return false;
    for (rma::rank_t r = 0; r < me_.machine().ranks(); ++r) {
      if (!port_.is_dead(r)) continue;
      for (int i = 0; i < me_.records(); ++i)
        if (is_ours(record::from(port_.load(me_.record_of(r, i))))) return true;
    }
    line_.deaths = deaths;
    return false;
  }

  // The generation is closed: waits until it is open, or repairs if the repairer died. False if
  // time is over before.
  template <class Until>
  bool await_repair(rma::word generation, Until until) {
    const rma::word deaths = port_.deaths();
    const rma::word repairer = port_.load(where_.repairer);
    if (repairer == 0 || port_.is_dead(rank_of(repairer))) return repair(), true;
    const rma::lifeline line{where_.generation, generation, deaths};
    const auto is_open = rma::differs_from(generation);
    if constexpr (std::is_same_v<Until, rma::deadline>) {
      const rma::word now = port_.await_until_or_death(where_.generation, is_open, until, line);
      return is_open(now) || !port_.is_over(until);
    } else {
      port_.await_or_death(where_.generation, is_open, line);
      return true;
    }
  }

  void await_open() {
    while (true) {
      const rma::word now = port_.load(where_.generation);
      if (!is_closed(now)) return;
      await_repair(now, rma::forever{});
    }
  }

  // Replaces the generation, unless that has been done: if somebody died in it, or we have left it
  // in disorder. Our record is not idle, so if we die in here that is a death of this lock too.
  [[gnu::noinline]] void repair(rma::word in_disorder = never) {
    if (!take_the_right()) return;
    rma::word generation = port_.load(where_.generation);
    // A generation that was closed already was so by a repairer that died.
    if (!is_closed(generation) && generation != in_disorder && !there_is_a_body())
      return port_.store(where_.repairer, 0);
    if (!is_closed(generation)) port_.store(where_.generation, ++generation);
    // A participant that writes its record after this sees the generation closed (announce).
    if constexpr (Port::capabilities.node_fence)
      port_.fence_node();
    else
      port_.fence();
    port_.rouse();

    rma::word heirs = 0;
    for_each_record([&](rma::rank_t r, rma::plain_cell at) { heirs += survey(r, at, generation); });

    // Now the words are ours alone, and so is any way to write them.
    port_.store(where_.inherited, heirs);
    for (rma::rank_t r = 0; r < me_.machine().ranks(); ++r)
      for (std::uint32_t i = where_.line.index + rma::line_words; i < where_.end; ++i)
        if (port_.load(rma::plain_cell{r, i}) != 0) port_.store(rma::plain_cell{r, i}, 0);
    for_each_record([&](rma::rank_t, rma::plain_cell at) {
      const auto of = record::from(port_.load(at));
      if (is_ours(of) && of.get(record::phase) == record::buried) port_.store(at, 0);
    });
    port_.store(where_.generation, generation + 1);
    port_.store(where_.repairer, 0);
    port_.fence();
    port_.rouse();
  }

  [[nodiscard]] static rma::rank_t rank_of(rma::word repairer) {
    return static_cast<rma::rank_t>(static_cast<std::uint32_t>(repairer) - 1);
  }

  // False if another participant has repaired, or stopped doing so: then we have to look again.
  [[nodiscard]] bool take_the_right() {
    const rma::word deaths = port_.deaths();
    const rma::word generation = port_.load(where_.generation);
    const rma::word now = port_.load(where_.repairer);
    if (now != 0 && !port_.is_dead(rank_of(now))) {
      port_.await_or_death(where_.repairer, rma::differs_from(now),
                           {where_.generation, generation, deaths});
      return false;
    }
    // With the generation: the next owner of a dead repairer's place cannot write the same word,
    // since it comes after a repair. So the compare-swap never takes the right from the living.
    const rma::word ours = generation << 32 | (static_cast<rma::word>(me_.rank()) + 1);
    return port_.cpu_compare_swap(where_.repairer, now, ours) == now;
  }

  [[nodiscard]] bool there_is_a_body() {
    line_.deaths = never;  // not what we knew before we had the right
    return has_lost_one();
  }

  // What a participant brings into the next generation. Waits until it uses no word of this one.
  [[nodiscard]] rma::word survey(rma::rank_t r, rma::plain_cell at, rma::word generation) {
    while (true) {
      const rma::word deaths = port_.deaths();
      // Read before the record: a dead participant writes no more. One read of the record decides:
      // a participant that dies after it is a death that this repair does not know.
      const bool is_dead = port_.is_dead(r);
      const auto of = record::from(port_.load(at));
      if (!is_ours(of)) return 0;
      const rma::word phase = of.get(record::phase);
      if (is_dead) {
        bury(r, at, of);
        return 0;
      }
      if (phase == record::holding) return exclusively;
      if (phase == record::sharing) return 1;
      if (phase != record::acquiring && phase != record::releasing) return 0;
      port_.await_or_death(at, rma::differs_from(of.bits()),
                           {where_.generation, generation, deaths});
    }
  }

  void bury(rma::rank_t r, rma::plain_cell at, record of) {
    if (of.get(record::phase) == record::holding) port_.store(where_.died, 1);
    port_.bury(r);
    port_.store(at, of.with(record::phase, record::buried).bits());
  }

  template <class Visit>
  void for_each_record(Visit visit) {
    for (rma::rank_t r = 0; r < me_.machine().ranks(); ++r)
      for (int i = 0; i < me_.records(); ++i) visit(r, me_.record_of(r, i));
  }

  robust_participant<Port>& me_;
  Port& port_;
  resolved_generation_cells<Port> where_;
  int place_ = -1;  // of our record, while we acquire, hold or release
};

}  // namespace lockflight::lock
