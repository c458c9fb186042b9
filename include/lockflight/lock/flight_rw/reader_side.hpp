// What the readers of flight-rw do: they count themselves, look at the gate of their node, and wait
// there, by their CPU's atomics and loads alone. flight_rw/gate.hpp has the values,
// flight_rw/layout.hpp says where they lie, flight_rw.hpp has the protocol.
//
// Writers wait for who has parked, whether it runs or not. So where ranks share cores a reader that
// finds the gate closed takes its count back, awaits the end of that turn and comes anew, and parks
// only when it has found the gate closed again `overtaking` times.
//
// A reader whose cell is its own leaves it by a store. Where all share a node and read again and
// again, it comes by one too: its look at the gate may then be early, as the gate says (`biased`),
// and the writer that closes it makes all of them come to a fence. A store, a load and a store to
// read.
// Source: "BRAVO: Biased Locking for Reader-Writer Locks" (Dice and Kogan, USENIX ATC 2019), with
// reads counted where that looks at the clock, and for the fence the asymmetric ones of liburcu.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <utility>

#include "lockflight/lock/flight_rw/deputy.hpp"
#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/lock/flight_rw/listing.hpp"
#include "lockflight/lock/flight_rw/parameters.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class reader_gates {
 public:
  reader_gates(rma::participant<Port>& me, const reader_cells& where,
               const flight_rw_parameters& set)
      : port_(me.port()),
        gate_(rma::resolve(port_, where.gate_of(me.machine(), me.rank()))),
        few_(rma::resolve(port_, where.of_rank(me.machine(), me.rank(), false))),
        more_(where.two_kinds() ? rma::resolve(port_, where.of_rank(me.machine(), me.rank(), true))
                                : few_),
        mine_(few_),
        alone_(where.ranks_of_a_cell == 1 || me.machine().ranks() == 1),
        mine_alone_(alone_),
        overtaking_(set.overtaking_on(me.port())),
        reads_for_bias_(set.bias > 0 && alone_ && me.machine().nodes() == 1 ? set.bias : never),
        zero_(where.zero_of_gate(where.gate_of(me.machine(), me.rank()).home)),
        listing_(me, where),
        deputy_(me, where) {}

  [[nodiscard, gnu::always_inline]] gate look() { return gate::from(port_.load(gate_) ^ zero_); }
  /// Adds to the counts, and later loads come after that (C14); returns what they were. 1 CPU
  /// fetch-add.
  rma::word count(rma::word change) { return port_.cpu_fetch_add(mine_, change); }
  /// Takes back what we are counted as, after all that was done meanwhile. 1 CPU fetch-add, or, if
  /// the cell is ours alone, a store.
  [[gnu::always_inline]] void uncount(rma::word held) {
    if (mine_alone_)
      port_.store(mine_, 0);
    else
      static_cast<void>(port_.cpu_fetch_add(mine_, 0 - held));
  }
  /// For who has flight, since nobody moves the cells then.
  void count_with_flight(rma::word& held) {
    move_to(look().gathered());
    held = reader_count::active;
    count(held);
  }
  /// Looks at the gate, for who is counted as active; a writer that missed us closed it. Who is
  /// counted in the wrong cell by now is counted in both before it looks again, so that it is
  /// counted where that look says, whatever it says.
  [[nodiscard]] gate look_when_counted() {
    const gate seen = look();
    if (seen.gathered() == gathered_) [[likely]]
      return seen;
    move_to(seen.gathered());
    count(reader_count::active);
    const gate now = look();
    move_to(!now.gathered());
    uncount(reader_count::active);
    move_to(now.gathered());
    return now;
  }
  /// Counts us as active, and looks at the gate. 1 CPU fetch-add and a load; at a biased gate a
  /// store and a load.
  [[nodiscard]] gate come() {
    if (can_be_biased && biased_) {
      port_.store(mine_, reader_count::active);
      if (look().open_and_biased()) [[likely]]
        return gate{}.with_bias();
      // A writer has closed it. The next one brings nobody to a fence, and must not miss us,
      // whether we come in or park.
      port_.fence();
    } else {
      count(reader_count::active);
    }
    const gate seen = look_when_counted();
    if (can_be_biased) note(seen);
    return seen;
  }
  /// The same, and lists the node if it is not.
  [[nodiscard]] gate come_and_list() { return list(come(), port_.deadline_in(0)); }
  /// Whether it came; `seen` is the gate then, or when time was over.
  template <class Predicate, class Until>
  [[nodiscard]] bool await(Predicate done, Until until, gate& seen) {
    rma::word bits = 0;
    const bool came = rma::await(
        port_, gate_, [=, zero = zero_](rma::word now) { return done(gate::from(now ^ zero)); },
        until, bits);
    seen = gate::from(bits ^ zero_);
    return came;
  }

  /// Whether we have waited for writers since this was asked last.
  [[nodiscard]] bool has_waited() { return std::exchange(has_waited_, false); }

  enum class arrival : std::uint8_t {
    in,
    in_often,   // so often past the same gate that it had better be biased
    must_open,  // the gates are idle, we are not counted, and others of our cell rely on us
    gave_up,
  };

  /// As flight_rw.hpp has it; `held` is what the reader is then counted as.
  template <class Until>
  [[nodiscard]] arrival enter(Until until, rma::word& held) {
    // Who gives up and comes again must not look, each time that a writer looks, like a reader that
    // is in.
    if constexpr (!is_patient<Until>)
      if (const gate found = look(); found.what() == gate::state::closed)
        if (!await_end_of(found, until)) return arrival::gave_up;
    held = reader_count::active;
    const gate found = come();
    if (found.what() == gate::state::open) [[likely]]
      return found.biased() || !wants_bias() ? arrival::in : arrival::in_often;
    return wait(found, until, held);
  }
  /// The same for who is counted as active, and parks if the gate is not open.
  template <class Until>
  [[nodiscard]] arrival enter_counted(Until until, rma::word& held) {
    const gate found = list(look_when_counted(), until);
    return found.what() == gate::state::open ? arrival::in : park(found.epoch(), until, held);
  }

 private:
  static constexpr bool can_be_biased = Port::capabilities.node_fence;
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  void note(gate seen) {
    if (reads_for_bias_ == never) return;
    biased_ = seen.biased();
    // Gates that are not open are not read past, and must not be counted without an end.
    const bool again = seen == last_ && seen.what() == gate::state::open && !biased_;
    reads_ = again ? reads_ + 1 : 0;
    last_ = seen;
  }

  [[nodiscard]] bool wants_bias() {
    if constexpr (!can_be_biased) return false;
    if (reads_ < reads_for_bias_) [[likely]]
      return false;
    reads_ = 0;
    return true;
  }

  // For who is counted as active; what the gate says then.
  template <class Until>
  [[nodiscard]] gate list(gate found, Until until) {
    if (found.what() != gate::state::unlisted) return found;
    listing_.list(found, until);
    return look();
  }

  template <class Until>
  static constexpr bool is_patient = std::same_as<Until, rma::forever>;

  // Of the writers' turn for which the gate was found closed. False if time was over first.
  template <class Until>
  [[nodiscard]] bool await_end_of(gate found, Until until) {
    gate now;
    const auto is_over = [=](gate g) {
      return g.epoch() != found.epoch() || g.what() != gate::state::closed;
    };
    return await(is_over, until, now);
  }

  // A reader that is counted as active, and has found its gate not open. Not inlined: who finds it
  // open goes by in a few instructions.
  template <class Until>
  [[nodiscard, gnu::noinline]] arrival wait(gate found, Until until, rma::word& held) {
    found = list(found, until);
    if (found.what() == gate::state::open) return arrival::in;
    if constexpr (is_patient<Until>)
      for (std::int64_t n = 0; n < overtaking_ && found.what() == gate::state::closed; ++n) {
        uncount(held);
        static_cast<void>(await_end_of(found, until));
        has_waited_ = true;
        found = come();
        if (found.what() == gate::state::open) return arrival::in;
      }
    return park(found.epoch(), until, held);
  }

  template <class Until>
  [[nodiscard]] arrival park(rma::word epoch, Until until, rma::word& held) {
    // The first patient one of a phase at its cell looks after the others, should the gate be idle;
    // also when it has come anew and they have not.
    bool looks_after = !is_patient<Until>;
    while (true) {
      const rma::word parked =
          reader_count::parked(epoch) + (is_patient<Until> ? reader_count::patient(epoch) : 0);
      const rma::word before = count(parked - held);
      held = parked;
      looks_after = looks_after || reader_count::of(reader_count::patient(epoch), before) == 0;
      const auto moved_on = [=](gate g) {
        return g.lets_in(epoch) || g.what() == gate::state::open ||
               (looks_after && g.needs_reader());
      };
      gate now;
      const bool in_time = await_as_deputy(moved_on, epoch, looks_after, until, now);
      if (now.lets_in(epoch)) {
        has_waited_ = true;
        return arrival::in;
      }
      if (!in_time || now.what() == gate::state::idle) {
        uncount(held);
        return in_time ? arrival::must_open : arrival::gave_up;
      }
      // Open for the same epoch, since a writer has given up: we come anew.
      count(reader_count::active - held);
      held = reader_count::active;
      now = list(look_when_counted(), until);
      if (now.what() == gate::state::open) return arrival::in;
      epoch = now.epoch();
    }
  }

  // `await` for who has parked at `epoch`: it has time for what a writer wishes
  // (flight_rw/gate_tree.hpp), if it is the one of its cell that looks after the others.
  template <class Predicate, class Until>
  [[nodiscard]] bool await_as_deputy(Predicate moved_on, rma::word epoch, bool looks_after,
                                     Until until, gate& seen) {
    if constexpr (!is_patient<Until>) {
      return await(moved_on, until, seen);
    } else {
      for (rma::word seen_to = 0;; seen_to = seen.wish()) {
        // Not when they are closed for the next epoch: that writer waits for us.
        const auto is_for_us = [=](gate g) {
          return looks_after && g.wants_deputy() && g.wish() != seen_to &&
                 (g.what() == gate::state::open || g.epoch() == epoch);
        };
        const auto done = [=](gate g) { return moved_on(g) || is_for_us(g); };
        static_cast<void>(await(done, until, seen));
        if (is_for_us(seen)) deputy_.see_to(seen);
        if (moved_on(seen)) return true;
      }
    }
  }

  void move_to(bool gathered) {
    gathered_ = gathered;
    mine_ = gathered ? more_ : few_;
    mine_alone_ = alone_ && !gathered;
  }

  Port& port_;
  using counts = rma::resolved<Port, rma::cpu_cell>;
  rma::resolved<Port, rma::cpu_cell> gate_;  // of our node
  counts few_;                               // that we share with few others
  counts more_;                              // and with more
  counts mine_;                              // that we are counted in, or were last
  bool alone_;
  bool mine_alone_;
  bool has_waited_ = false;
  std::int64_t overtaking_;
  bool gathered_ = false;   // mine_ is more_
  bool biased_ = false;     // the gate, when we looked last
  gate last_;               // that we looked at, before it was biased
  std::int64_t reads_ = 0;  // past this one
  std::int64_t reads_for_bias_;
  rma::word zero_;
  gate_listing<Port> listing_;
  deputy<Port> deputy_;
};

}  // namespace lockflight::lock
