// flight-rw: the library's own reader-writer lock. Readers stay on their node: a counter and a gate
// there are all that they touch. Writers agree among themselves by flight, close the gates of all
// nodes where readers come, wait until the readers are gone, and open the gates again.
// docs/flight.md explains it, with the invariants R1 to R6.
//
// Source: lockflight. Distributed counters as in RMA-RW ("High-Performance Distributed RMA Locks",
// section 3.2.1), with CPU atomics as ALock's local cohort has them ("ALock: Asymmetric Lock
// Primitive for RDMA Systems", section 5), and phases instead of modes, after Brandenburg and
// Anderson, "Spin-Based Reader-Writer Synchronization for Multiprocessor Real-Time Systems" (2010).
//
// A gate is open(e) or closed(e), with e growing. A reader counts itself as active and reads the
// gate. If that is closed it stays away a few times without being counted, and then parks: it is
// counted for epoch e instead, in the same atomic, and enters without another check when the gate
// has moved on to e + 1. So phases of writers and of readers alternate. After two writers' phases
// in a row that met no reader the gates are left idle, and writers pay for flight alone; a reader
// must take flight to open them. Gates where no reader comes are unlisted.
//
// Order: writers as flight; readers none among themselves. Fairness bound: a reader stays away
// `overtaking` times, each a pause of 4 µs at most and the rest of a writers' phase, and then
// parks. One that has parked is overtaken by at most T_W writers, by two phases more if its gate is
// unlisted after them, or, if it has to open the gates, as flight says. A writer that waits for
// flight is overtaken by any number of readers while the gates are open, so there is no bound of
// all overtaking. Network operations, with K other nodes whose gates are in use:
//   readers   none; the one that lists its node 1 add + 1 get; the one that opens idle gates what
//             flight costs, 2 gets, K + 1 puts
//   writers   what flight costs; at idle gates 1 get more, unless the writer is on the home's node
//             or knows from the writer before it that they are idle. Else to close the gates 1 put
//             + 1 get unless all are in use, K + 1 puts; K gets for each scan, each of all counters
//             of a node; to open them K + 1 puts
//   handoff   between writers what flight costs
#pragma once

#include <cstdint>
#include <stdexcept>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/lock/flight_rw/parameters.hpp"
#include "lockflight/lock/flight_rw/reader_side.hpp"
#include "lockflight/lock/flight_rw/writer_side.hpp"

namespace lockflight::lock {

template <rma::port Port>
class flight_rw {
  using state = gate::state;

 public:
  static constexpr facts about{
      .name = "flight-rw",
      .what = kind::rw,
      .source = "lockflight: gates and counters on each node, flight among the writers",
      .bytes_home = 64,
      .bytes_per_node = 56,
      .bytes_per_participant = 24,
      .bytes_of_counters = reader_layout::most_bytes_of_counters,
      .node_at_home = true,
  };
  using parameters = flight_rw_parameters;

  struct cells {
    typename flight<Port>::cells writers;
    reader_layout readers;

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set,
                       rma::rank_t home) {
      const auto writers = flight<Port>::cells::place(in, machine, set.writers, home);
      return {writers, reader_layout::place(in, machine, set, home, writers.beside())};
    }
  };

  flight_rw(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : port_(me.port()),
        flight_(me, where.writers, set.writers),
        readers_(me, where.readers, set),
        gates_(me, where.readers),
        is_one_node_(me.machine().nodes() == 1),
        t_w_(static_cast<rma::word>(set.t_w_on(me.port()))) {}

  // ---- readers ----

  void lock_shared() { static_cast<void>(lock_shared_until(rma::forever{})); }

  [[nodiscard]] bool try_lock_shared_within(std::uint64_t nanoseconds) {
    if (nanoseconds == 0) return try_lock_shared();
    return lock_shared_until(port_.deadline_in(nanoseconds));
  }

  /// Enters unless a writer has closed the gates. Tries to take flight if they are idle.
  [[nodiscard]] bool try_lock_shared() {
    const arrival how = readers_.try_enter();
    if (how != arrival::must_open) return how == arrival::in;
    if (try_flight()) return open_and_enter(), true;
    readers_.stop_opening();
    return false;
  }

  [[gnu::always_inline]] void unlock_shared() { readers_.leave(); }

  // ---- writers ----

  void lock() { static_cast<void>(lock_until(rma::forever{})); }

  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds) {
    if (nanoseconds == 0) return try_lock();
    return lock_until(port_.deadline_in(nanoseconds));
  }

  /// If no writer has it or waits and no reader is in. Closes the gates to find that out.
  [[nodiscard]] bool try_lock() { return try_flight() && shut_out_readers(port_.deadline_in(0)); }

  void unlock() {
    if (gates_.what() == state::idle) return flight_.unlock_with(phase::idle_gates().bits());
    // The readers' phase comes after T_W writers, or when no writer is there to follow.
    const rma::word writers = phase_.get(phase::writers) + 1;
    if (writers < t_w_ && flight_.pass(phase_.with(phase::writers, writers).bits())) return;
    const bool are_idle = gates_.end_phase(writers, phase_.has(phase::quiet));
    flight_.unlock_with(are_idle ? phase::idle_gates().bits() : 0);
  }

  // ---- up and down ----

  /// Holds the lock beside readers, and no one else. Flight's cost; 1 put for each gate to open.
  void lock_upgrade() {
    static_cast<void>(take_flight(rma::forever{}));
    gates_.open();
  }
  [[nodiscard]] bool try_lock_upgrade() {
    if (!try_flight()) return false;
    gates_.open();
    return true;
  }
  void unlock_upgrade() { flight_.unlock(); }
  /// No one else writes in between. Waits for the readers.
  void unlock_upgrade_and_lock() { static_cast<void>(shut_out_readers(rma::forever{})); }
  void unlock_upgrade_and_lock_shared() { open_and_enter(); }
  void unlock_and_lock_upgrade() { gates_.open(); }
  void unlock_and_lock_shared() { open_and_enter(); }
  /// From shared to exclusive, if no writer has it or waits; waits for the other readers.
  [[nodiscard]] bool try_unlock_shared_and_lock() {
    if (!try_flight()) return false;
    gates_.close();  // the gates are open: a writer that closes them has flight until we have left
    readers_.leave();
    phase_ = {};
    static_cast<void>(gates_.await_readers(rma::forever{}));
    return true;
  }

  // ---- for a lock that is made of this one ----

  template <class Until>
  [[nodiscard]] bool lock_until(Until until) {
    return take_flight(until) && shut_out_readers(until);
  }

  template <class Until>
  [[nodiscard]] bool lock_shared_until(Until until) {
    const arrival how = readers_.enter(until);
    if (how == arrival::must_open) [[unlikely]]
      return open_when_idle(until);
    return how == arrival::in;
  }

 private:
  using arrival = typename reader_side<Port>::arrival;

  template <class Until>
  [[nodiscard]] bool take_flight(Until until) {
    return start_if(flight_.lock_until(until));
  }
  [[nodiscard]] bool try_flight() { return start_if(flight_.try_lock()); }
  // The holder of flight starts with what the last one passed.
  [[nodiscard]] bool start_if(bool has_flight) {
    if (!has_flight) return false;
    phase_ = phase::from(flight_.value());
    gates_.start(phase_);
    return true;
  }

  // Not counted while we wait for flight: its holder may open the gates, and a writer close them
  // again, that would wait for us.
  template <class Until>
  [[nodiscard, gnu::noinline]] bool open_when_idle(Until until) {
    try {
      if (take_flight(until)) return open_and_enter(), true;
    } catch (const std::length_error&) {  // no queue node is left: other readers rely on us (R5)
      readers_.stop_opening();
      throw;
    }
    readers_.stop_opening();
    return false;
  }
  // For the holder of flight: no writer closes the gates until we are counted.
  void open_and_enter() {
    gates_.open();
    readers_.enter_with_flight();
    flight_.unlock();
  }

  // False if time was over first: flight is released then, and readers may come.
  template <class Until>
  [[nodiscard, gnu::always_inline]] bool shut_out_readers(Until until) {
    return gates_.what() != state::open || close_and_await(until);
  }
  template <class Until>
  [[nodiscard, gnu::noinline]] bool close_and_await(Until until) {
    gates_.close();
    if (!gates_.await_readers(until)) {
      gates_.reopen();
      flight_.unlock();
      return false;
    }
    // A scan seldom finds a reader where few participants come. So the writer counts its own reads,
    // but not on several nodes, where one more phase at open gates costs the network.
    const bool has_read = is_one_node_ && readers_.has_come();
    phase_ = phase{}.with(phase::quiet, !has_read && gates_.is_quiet() ? 1 : 0);
    return true;
  }

  Port& port_;
  flight<Port> flight_;
  reader_side<Port> readers_;
  writer_side<Port> gates_;
  bool is_one_node_;
  rma::word t_w_;
  phase phase_;  // while we write at closed gates
};

}  // namespace lockflight::lock
