// flight-rw: the library's own reader-writer lock. Readers stay on their node: a counter and a gate
// there are all that they touch. Writers agree among themselves by flight, close the gates of all
// nodes, wait until the readers are gone, and open them again. Source: lockflight. Distributed
// counters as in RMA-RW ("High-Performance Distributed RMA Locks", section 3.2.1), but with CPU
// atomics as ALock's local cohort has them ("ALock: Asymmetric Lock Primitive for RDMA Systems",
// section 5), and phases instead of modes, after Brandenburg and Anderson, "Spin-Based
// Reader-Writer Synchronization for Multiprocessor Real-Time Systems" (2010).
//
// A gate is open(e), closed(e) or idle(e), with e growing. A reader counts itself as active and
// looks at the gate. If that is closed it parks: it is counted for phase e instead, in the same
// atomic, and enters without another look when the gate has moved on to e + 1. A writer that closes
// the gates for e waits until nobody is active and nobody is left of those who parked at e - 1. So
// writers and readers take turns. A writer that gives up opens the gates for e again, and who sees
// that comes anew; who misses it waits for the next one, while readers are in that outlast them.
//
// Where only writers come the gates stay closed: after two turns in a row that no reader came to
// they become idle, which promises nothing, and writers pay for flight alone. The first reader that
// parks at an idle gate takes flight itself and opens the gates; the others of its cell wait for
// it. Who may give up does not count as the first, and looks after itself. Gates of nodes where
// nobody reads are unlisted (flight_rw/directory.hpp), those of many nodes are a tree
// (flight_rw/gate_tree.hpp).
//
// Who holds flight while all gates are open keeps writers out, and readers in: the lock for
// upgrade. From there one writes as a writer, and reads as a reader who opens idle gates.
//
// Where a node has cells of two kinds, gates say in which of them readers count themselves, and who
// has counted itself looks whether they still do. When the readers' turn has just begun who writes
// lets readers come for a while (flight_rw/turn_policy.hpp). Where ranks share cores a reader comes
// anew at closed gates before it parks, and gates of a single node may be biased
// (flight_rw/reader_side.hpp).
//
// Order: writers as flight; readers none among themselves. Fairness bound: a reader that has parked
// is passed by at most T_W writers, by two turns more if its gate is unlisted after them, or, if it
// has to open the gates, as flight says; before that, by those who come between two of its looks.
// Network operations, with K other nodes with gates in use: readers none, but who lists its node or
// is a deputy; who opens idle gates flight's, 2 gets and K + 1 puts. Writers flight's, 1 get if not
// all gates are in use, 1 put and 1 get more to close them, K puts and K gets in 2 round trips to
// enter, up to K for each further look, K + 1 puts when readers have their turn, K gets before
// gates are left idle or unlisted, and if readers are preferred. Such a get has all cells of a
// node, two of them where cells have moved. With a tree K are a branch's nodes and branches.
#pragma once

#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/flight_rw/parameters.hpp"
#include "lockflight/lock/flight_rw/reader_side.hpp"
#include "lockflight/lock/flight_rw/turn_policy.hpp"
#include "lockflight/lock/flight_rw/writer_side.hpp"
#include "lockflight/lock/flight_rw/writers.hpp"

namespace lockflight::lock {

template <rma::port Port>
class flight_rw {
  using state = gate::state;

 public:
  static constexpr facts about{
      .name = "flight-rw",
      .what = kind::rw,
      .source = "lockflight: gates and counters on each node, flight among the writers",
      .bytes_home = 72,
      .bytes_per_node = 56,  // with two cells there; and with a tree 16 on the first of a branch
      .bytes_per_participant = 24,
      .node_at_home = true,
  };
  using parameters = flight_rw_parameters;

  struct cells {
    typename flight<Port>::cells writers;
    reader_cells readers;

    static cells place(rma::layout& in, const rma::topology& machine, const parameters& set,
                       rma::rank_t home) {
      const auto writers = flight<Port>::cells::place(in, machine, set.writers, home);
      return {writers, reader_cells::place(in, machine, set, home, writers.beside())};
    }
  };

  flight_rw(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : writers_(me, where.writers, set.writers, where.readers),
        gates_(me, where.readers, set),
        keeper_(me, where.readers, set),
        port_(me.port()),
        policy_(turn_policy::of(set, where.readers, me.machine(), rma::shares_cores(me.port()))),
        after_readers_(set.preference == parameters::readers) {}

  // ---- readers ----

  void lock_shared() { static_cast<void>(lock_shared_until(rma::forever{})); }

  [[nodiscard]] bool try_lock_shared_within(std::uint64_t nanoseconds) {
    if (nanoseconds == 0) return try_lock_shared();
    return lock_shared_until(port_.deadline_in(nanoseconds));
  }

  /// Enters unless a writer has closed the gates. Tries to take flight if they are idle.
  [[nodiscard]] bool try_lock_shared() {
    gate found = gates_.look();
    // Who keeps trying must not look, each time that a writer looks, like a reader that is in.
    if (found.what() == state::closed) return false;
    if (found.what() != state::idle) {
      held_ = reader_count::active;
      found = gates_.come_and_list();
      if (found.what() == state::open) return true;
      unlock_shared();
    }
    if (found.what() != state::idle || !try_flight()) return false;
    open_and_enter();
    return true;
  }

  [[gnu::always_inline]] void unlock_shared() { gates_.uncount(held_); }

  // ---- writers ----

  void lock() { static_cast<void>(lock_until(rma::forever{})); }

  [[nodiscard]] bool try_lock_within(std::uint64_t nanoseconds) {
    if (nanoseconds == 0) return try_lock();
    return lock_until(port_.deadline_in(nanoseconds));
  }

  /// If no writer has it or waits and no reader is in. Costs K gets more if gates are open.
  [[nodiscard]] bool try_lock() {
    if (!try_flight()) return false;
    // Epochs go on only past a writer that has seen those leave who parked before the last one.
    if (keeper_.look().what() == state::open && !keeper_.may_close()) {
      writers_.unlock();
      return false;
    }
    // By itself: an attempt looks once, and deputies take longer.
    if (!begin_turn(/*with_deputies=*/false) || nobody_reads()) return true;
    open_and_unlock();
    return false;
  }

  void unlock() {
    if (idle_) return writers_.unlock(writers_turn::are_idle);
    // The readers' turn comes after T_W writers, or when no writer is there to follow.
    const gate now = policy_.adapts_t_w ? keeper_.know(keeper_.look()) : keeper_.look();
    const writers_turn next = turn_.next();
    if (next.writers < policy_.most_writers(now) && writers_.pass(next.bits())) return;
    writers_.unlock(end_turn(keeper_.know(now)));
  }

  // ---- up and down ----

  /// Holds the lock beside readers, and nobody else. flight's cost; 1 put for each gate to open.
  void lock_upgrade() { static_cast<void>(take_flight(rma::forever{})), keeper_.open_all(); }
  [[nodiscard]] bool try_lock_upgrade() {
    if (!try_flight()) return false;
    keeper_.open_all();
    return true;
  }
  void unlock_upgrade() { writers_.unlock(); }
  /// Nobody else writes in between. Waits for the readers.
  void unlock_upgrade_and_lock() { static_cast<void>(shut_out_readers(rma::forever{})); }
  void unlock_upgrade_and_lock_shared() { open_and_enter(); }
  void unlock_and_lock_upgrade() { keeper_.open_all(); }
  void unlock_and_lock_shared() { open_and_enter(); }
  /// From shared to exclusive, if nobody writes or waits to; waits for the other readers.
  [[nodiscard]] bool try_unlock_shared_and_lock() {
    if (!try_flight()) return false;
    static_cast<void>(begin_turn());  // who closes open gates has flight until we have left
    gates_.uncount(held_);
    keeper_.start_looking();
    static_cast<void>(keeper_.await_readers(rma::forever{}));
    return true;
  }

 private:
  using arrival = typename reader_gates<Port>::arrival;
  static constexpr rma::word most_quiet = 1;  // quiet turns before the last of them

  template <class Until>
  [[nodiscard]] bool take_flight(Until until) {
    if (!writers_.lock_until(until, [this] { keeper_.post_look(); })) return false;
    keeper_.start(writers_.note(), writers_.has_looked());
    return true;
  }
  [[nodiscard]] bool try_flight() {
    if (!writers_.try_lock()) return false;
    keeper_.start(writers_.note(), false);
    return true;
  }

  template <class Until>
  [[nodiscard]] bool lock_shared_until(Until until) {
    const arrival how = gates_.enter(until, held_);
    if (how == arrival::must_open) [[unlikely]]
      return open_when_idle(until);
    if (how == arrival::in_often) [[unlikely]]
      bias();
    return how != arrival::gave_up;
  }

  // Not counted while we wait for flight: somebody else may open the gates before it is our turn,
  // and a writer close them again, that would wait for us.
  template <class Until>
  [[nodiscard, gnu::noinline]] bool open_when_idle(Until until) {
    if (!take_flight(until)) return false;
    gates_.count_with_flight(held_);
    // Others have opened our gate meanwhile, and writers have their turn. Were we not counted when
    // it goes on, gates could be idle again whenever we look, for ever.
    if (gates_.look().what() == state::closed && writers_.pass(writers_.note())) {
      const arrival how = gates_.enter_counted(until, held_);
      return how == arrival::must_open ? open_when_idle(until) : how == arrival::in;
    }
    open_and_unlock();
    return true;
  }

  // For a reader that is in: a writer that closes the gates has flight until we have left.
  [[gnu::noinline]] void bias() {
    if (!try_flight()) return;
    keeper_.set(keeper_.know(keeper_.look()).with_bias());
    writers_.unlock();
  }

  // For who has flight: nobody closes the gates until it is counted.
  void open_and_enter() {
    gates_.count_with_flight(held_);
    open_and_unlock();
  }
  void open_and_unlock() {
    keeper_.open_here();
    writers_.unlock();
  }

  [[nodiscard]] bool nobody_reads() {
    keeper_.start_looking();
    const bool gone = keeper_.readers_are_gone();
    turn_.quiet = keeper_.is_quiet();
    return gone;
  }

  template <class Until>
  [[nodiscard]] bool lock_until(Until until) {
    if (!take_flight(until)) return false;
    if (shut_out_readers(until)) return true;
    writers_.unlock();
    return false;
  }

  // False, and readers may come, if time was over first.
  template <class Until>
  [[nodiscard]] bool shut_out_readers(Until until) {
    if (after_readers_)
      for (rma::backoff b(200, 20'000); keeper_.look().what() == state::open && !nobody_reads();
           port_.pause(b.next()))
        if (rma::is_over(port_, until)) return false;
    if (gates_.has_waited() || writers_.note() == writers_turn::is_over)
      keeper_.let_readers_come(until, policy_.readers_turn);
    if (!begin_turn()) return true;
    keeper_.start_looking();
    if (keeper_.await_readers(until)) {
      turn_.quiet = keeper_.is_quiet();
      return true;
    }
    keeper_.reopen();
    return false;
  }

  // Closes the gates if they are open. Returns whether the readers must be waited for.
  [[nodiscard]] bool begin_turn(bool with_deputies = true) {
    const gate now = keeper_.look();
    turn_ = now.what() == state::closed ? writers_turn::from(writers_.note()) : writers_turn{};
    idle_ = now.what() == state::idle;
    if (now.what() != state::open) return false;
    with_deputies ? keeper_.close(now) : keeper_.set(now.as(state::closed));
    return true;
  }

  [[nodiscard]] std::uint16_t end_turn(gate now) {  // returns the note for the next writer
    // Who has written since the gates were closed may wait to read by now, and at idle gates
    // readers of each cell would take flight.
    if (turn_.quiet && (turn_.writers > 0 || now.quiet() >= most_quiet))
      turn_.quiet = keeper_.is_quiet_now();
    if (turn_.quiet && now.quiet() >= most_quiet) return keeper_.leave_idle(now);
    gate next = now.next_phase().with_quiet(turn_.quiet ? now.quiet() + 1 : 0);
    if (policy_.adapts_t_w || policy_.adapts_cells)
      next = policy_.adapted(next, keeper_.ended(turn_.next().writers, policy_));
    keeper_.open(next);
    return writers_turn::is_over;
  }

  writers<Port> writers_;
  reader_gates<Port> gates_;
  gate_keeper<Port> keeper_;
  Port& port_;
  turn_policy policy_;
  bool after_readers_;
  writers_turn turn_;   // while we write
  bool idle_ = false;   // the gates, all that time
  rma::word held_ = 0;  // as what we are counted, while we read
};

}  // namespace lockflight::lock
