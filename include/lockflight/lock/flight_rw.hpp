// flight-rw: the library's own reader-writer lock. Readers stay on their node: a counter and a gate
// there are all that they touch. Writers agree among themselves by flight, close the gates of all
// nodes, wait until the readers are gone, and open them again.
//
// Source: lockflight. Distributed counters as in RMA-RW ("High-Performance Distributed RMA Locks",
// section 3.2.1), but with CPU atomics as ALock's local cohort has them ("ALock: Asymmetric Lock
// Primitive for RDMA Systems", section 5), and phases instead of modes, after Brandenburg and
// Anderson, "Spin-Based Reader-Writer Synchronization for Multiprocessor Real-Time Systems" (2010).
//
// A gate is open(e), closed(e) or idle(e), with e growing. A reader counts itself as active and
// looks at the gate. If that is closed it parks: it is counted for phase e instead, in the same
// atomic, and enters without another look when the gate has moved on to e + 1. A writer that
// closes the gates for e waits until nobody is active and nobody is left of those who parked at
// e - 1. So writers and readers take turns. A writer that gives up opens the gates for e again, and
// who sees that comes anew; who misses it waits for the next one, as long as readers are in that
// outlast the writers' patience.
//
// Where only writers come the gates stay closed: after two closings in a row that found no reader
// they become idle, which promises nothing, and writers pay for flight alone. The first reader that
// parks at an idle gate takes flight itself and opens them all; the others of its cell wait for it.
// Who may give up does not count as the first, and looks after itself.
//
// Who holds flight while the gates are open keeps writers out, and readers in: that is the lock for
// upgrade. From there the way to write and back is that of a writer, and the way to read is that of
// a reader who opens idle gates.
//
// With preference for readers a writer closes the gates when it has seen nobody read, and each
// writer opens them again; for writers, the gates stay closed as long as flight is passed on.
//
// Order: writers as flight; readers none among themselves. Fairness bound: a reader that waits is
// passed by at most T_W writers, or, if it has to open the gates, as flight says; a writer waits
// for the readers that were in or parked when it closed the gates. Network operations, C cells on
// other nodes: readers none, whatever their node; the one that opens idle gates flight's and C
// puts. Writers flight's, and, unless the gates were closed, C puts and C gets in 2 round trips to
// enter, C gets for each further look, and C puts when the readers have their turn.
// With preference for readers C gets more for each look before that.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/reader_gates.hpp"

namespace lockflight::lock {

struct flight_rw_parameters {
  std::int64_t reader_level = 0;
  std::int64_t t_w = 256;
  std::int64_t preference = 0;
  flight_parameters writers{};

  [[nodiscard]] static constexpr auto all() {
    using p = flight_rw_parameters;
    return std::array{
        parameter<p>{"reader_level", [](auto& s) -> std::int64_t& { return s.reader_level; }, 0, 64,
                     "each element of this level has a cell for its readers, and beyond the last "
                     "level each rank; 0: each node, or each rank if there is one node"},
        parameter<p>{"T_W", [](auto& s) -> std::int64_t& { return s.t_w; }, 1, 4'000,
                     "writers in a row while readers wait"},
        parameter<p>{"preference", [](auto& s) -> std::int64_t& { return s.preference; }, 0, 2,
                     "0 fair, 1 readers: writers may starve, 2 writers: readers may"},
        parameter<p>{"barge", [](auto& s) -> std::int64_t& { return s.writers.barge; }, 0, 60'000,
                     "writers that come past the head of a node's queue"},
        parameter<p>{"local_budget",
                     [](auto& s) -> std::int64_t& { return s.writers.local_budget; }, 1, 60'000,
                     "writers in a row on a node while another one waits"},
        parameter<p>{"remote_budget",
                     [](auto& s) -> std::int64_t& { return s.writers.remote_budget; }, 1, 60'000,
                     "nodes in a row before the home's node is let in"},
    };
  }
};

template <rma::port Port>
class flight_rw {
  using state = gate::state;

 public:
  static constexpr facts about{
      .name = "flight-rw",
      .what = kind::rw,
      .source = "lockflight: gates and counters on each node, flight among the writers",
      .bytes_home = 48,
      .bytes_per_node = 48,
      .bytes_per_participant = 24,
      .node_at_home = true,
  };
  using parameters = flight_rw_parameters;

  struct cells {
    typename flight<Port>::cells writers;
    typename reader_gates<Port>::cells readers;

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set,
                       rma::rank_t home) {
      const auto writers = flight<Port>::cells::place(in, machine, set.writers, home);
      return {writers, reader_gates<Port>::cells::place(in, home)};
    }
  };

  flight_rw(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : writers_(me, where.writers, set.writers),
        gates_(me, where.readers, set.reader_level),
        port_(me.port()),
        t_w_(static_cast<std::uint16_t>(set.preference == prefer_readers   ? 1
                                        : set.preference == prefer_writers ? turn::most
                                                                           : set.t_w)),
        after_readers_(set.preference == prefer_readers) {}

  // ---- readers ----

  void lock_shared() { static_cast<void>(lock_shared_until(rma::forever{})); }

  [[nodiscard]] bool try_lock_shared_within(std::uint64_t nanoseconds) {
    if (nanoseconds == 0) return try_lock_shared();
    return lock_shared_until(port_.deadline_in(nanoseconds));
  }

  /// Enters unless a writer has closed the gates. At idle gates it tries to take flight, and opens
  /// them.
  [[nodiscard]] bool try_lock_shared() {
    const gate found = gates_.look();
    // Who keeps trying must not look, each time that a writer looks, like a reader that is in.
    if (found.what() == state::closed) return false;
    if (found.what() == state::idle) {
      if (!writers_.try_lock()) return false;
      open_and_enter();
      return true;
    }
    held_ = reader_count::active;
    gates_.count(held_);
    if (gates_.look().what() == state::open) return true;
    unlock_shared();
    return false;
  }

  void unlock_shared() { gates_.uncount(held_); }

  // ---- writers ----

  void lock() { static_cast<void>(lock_until(rma::forever{})); }

  /// Takes the lock, unless that takes longer than so many nanoseconds.
  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds) {
    if (nanoseconds == 0) return try_lock();
    return lock_until(port_.deadline_in(nanoseconds));
  }

  /// Takes the lock if no writer has it or waits and no reader is in. While the gates are open, C
  /// gets more than lock costs; they are closed only if that look found nobody.
  [[nodiscard]] bool try_lock() {
    if (!writers_.try_lock()) return false;
    // Epochs go on only past a writer that has seen those leave who parked before the last one.
    if (gates_.look().what() == state::open && !nobody_reads()) {
      writers_.unlock();
      return false;
    }
    if (!begin_turn() || nobody_reads()) return true;
    open(gates_.look(), 0);
    writers_.unlock();
    return false;
  }

  void unlock() {
    const gate now = gates_.look();
    if (now.what() == state::closed) {
      // The readers' turn comes after T_W writers, or when no writer is there to follow.
      if (turn_.writers + 1 < t_w_ && writers_.pass(turn_.next().bits())) return;
      end_turn(now);
    }
    writers_.unlock();
  }

  // ---- up and down ----

  /// Holds the lock beside readers, and nobody else. flight's cost; C puts if the gates are closed.
  void lock_upgrade() {
    writers_.lock();
    let_readers_in();
  }
  [[nodiscard]] bool try_lock_upgrade() {
    if (!writers_.try_lock()) return false;
    let_readers_in();
    return true;
  }
  void unlock_upgrade() { writers_.unlock(); }
  /// Nobody else writes in between. Waits for the readers.
  void unlock_upgrade_and_lock() { static_cast<void>(shut_out_readers(rma::forever{})); }
  void unlock_upgrade_and_lock_shared() { open_and_enter(); }
  void unlock_and_lock_upgrade() { let_readers_in(); }
  void unlock_and_lock_shared() { open_and_enter(); }
  /// From shared to exclusive, if nobody writes or waits to. Waits for the other readers.
  [[nodiscard]] bool try_unlock_shared_and_lock() {
    if (!writers_.try_lock()) return false;
    // Gates are open: a writer that closes them has flight until we have left.
    static_cast<void>(begin_turn());
    gates_.uncount(held_);
    gates_.start_looking();
    static_cast<void>(gates_.await_readers(rma::forever{}));
    return true;
  }

 private:
  static constexpr std::int64_t prefer_readers = 1;
  static constexpr std::int64_t prefer_writers = 2;

  using turn = writers_turn;

  static constexpr rma::word most_quiet = 1;  // closings that find no reader before gates get idle

  template <class Until>
  [[nodiscard]] bool lock_shared_until(Until until) {
    const auto how = gates_.enter(until, held_);
    if (how != reader_gates<Port>::arrival::must_open) [[likely]]
      return how == reader_gates<Port>::arrival::in;
    // Not counted while we wait for flight: somebody else may open the gates before it is our turn,
    // and a writer close them again, that would wait for us.
    if (!writers_.lock_until(until)) return false;
    open_and_enter();
    return true;
  }

  // For who has flight: nobody closes the gates until it is counted.
  void open_and_enter() {
    let_readers_in();
    held_ = reader_count::active;
    gates_.count(held_);
    writers_.unlock();
  }

  [[nodiscard]] bool nobody_reads() {
    gates_.start_looking();
    const bool gone = gates_.readers_are_gone();
    turn_.quiet = !gates_.seen_any();
    return gone;
  }

  void let_readers_in() {
    if (const gate now = gates_.look(); now.what() != state::open) open(now, 0);
  }

  template <class Until>
  [[nodiscard]] bool lock_until(Until until) {
    if (!writers_.lock_until(until)) return false;
    if (shut_out_readers(until)) return true;
    writers_.unlock();
    return false;
  }

  // False, and readers may come, if time was over before those who read had left.
  template <class Until>
  [[nodiscard]] bool shut_out_readers(Until until) {
    if (after_readers_)
      for (rma::backoff b(200, 20'000); gates_.look().what() == state::open && !nobody_reads();
           port_.pause(b.next()))
        if (rma::is_over(port_, until)) return false;
    if (!begin_turn()) return true;
    gates_.start_looking();
    if (gates_.await_readers(until)) {
      turn_.quiet = !gates_.seen_any();
      return true;
    }
    // For the same epoch: those who parked before it may not have left, and two are told apart.
    gates_.set({state::open, gates_.look().epoch(), 0});
    return false;
  }

  // Closes the gates if they are open. Returns whether the readers must be waited for.
  [[nodiscard]] bool begin_turn() {
    const gate now = gates_.look();
    turn_ = now.what() == state::closed ? turn::from(writers_.note()) : turn{};
    if (now.what() != state::open) return false;
    gates_.set({state::closed, now.epoch(), now.quiet()});
    return true;
  }

  void end_turn(gate now) {
    if (turn_.quiet && now.quiet() >= most_quiet)
      gates_.set({state::idle, now.epoch(), now.quiet()});
    else
      open(now, turn_.quiet ? now.quiet() + 1 : 0);
  }

  void open(gate now, rma::word quiet) { gates_.set({state::open, now.epoch() + 1, quiet}); }

  flight<Port> writers_;
  reader_gates<Port> gates_;
  Port& port_;
  std::uint16_t t_w_;
  bool after_readers_;
  turn turn_;           // while we write
  rma::word held_ = 0;  // as what we are counted, while we read
};

}  // namespace lockflight::lock
