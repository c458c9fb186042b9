// The distributed counter (DC) of rma-rw: it counts the readers that are in, and a flag says that a
// writer has it. Every T_DC-th rank hosts a physical counter; a reader uses one of them, a writer
// takes them all.
//
// Source: "High-Performance Distributed RMA Locks", sections 3.2.1 and 3.3.3 to 3.3.6, Listings 6,
// 9 and 10. A physical counter has two words, ARRIVE and DEPART; c(p) is the counter of rank p.
// rma_rw.hpp lists what is corrected here (M1 to M4, M6).
//
// Invariant (M4): wherever the two words are read for a decision, ARRIVE less the WRITE flag less
// DEPART is never below the number of readers that are in. It is above that while a reader is about
// to give a ticket back.
//
// Cost in network operations, C counters:
// | reader arrives                             | 1 fetch-add          |
// | reader departs or gives its ticket back    | 1 add                |
// | reader resets its counter                  | 1 swap, 1 add        |
// | writer reads all counters                  | 2 C gets a round     |
// | writer takes all counters, gives them back | C fetch-adds, C adds |
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// c(p): the rank that hosts p's counter. T_DC = 0 places counters by the machine: one on each
/// node, or one on each rank where there is a single node.
[[nodiscard]] inline rma::rank_t counter_host(const rma::topology& machine, std::int64_t t_dc,
                                              rma::rank_t p) {
  if (t_dc > 0) return static_cast<rma::rank_t>(p / t_dc * t_dc);
  return machine.nodes() == 1 ? p : machine.leader_of(p, machine.node_level());
}

template <rma::port Port>
class distributed_counter {
 public:
  /// ARRIVE and DEPART at the same index on every rank; used on the ranks that c(p) names.
  struct cells {
    rma::nic_cell words;

    static cells place(rma::layout& in) { return {in.take<rma::nic_cell>(2)}; }
  };

  distributed_counter(rma::participant<Port>& me, const cells& where, std::int64_t t_dc,
                      std::int64_t t_r)
      : port_(me.port()),
        t_r_(static_cast<rma::word>(t_r)),
        mine_(where, counter_host(me.machine(), t_dc, me.rank())),
        here_(me.machine().same_node(mine_.arrive.home, me.rank())),
        all_(me.memory()) {
    std::size_t counters = 0;
    for (rma::rank_t p = 0; p < me.machine().ranks(); ++p)
      if (counter_host(me.machine(), t_dc, p) == p) ++counters;
    all_.reserve(counters);
    for (rma::rank_t p = 0; p < me.machine().ranks(); ++p)
      if (counter_host(me.machine(), t_dc, p) == p) all_.push_back({counter(where, p)});
  }

  // ---- for readers: their own counter ----

  /// Takes a ticket: adds 1 to ARRIVE and returns the value before. A ticket below T_R lets the
  /// reader enter.
  [[nodiscard]] rma::word arrive() { return rma::fetch_add_now(port_, mine_.arrive, 1); }

  /// Gives the ticket back: the reader did not enter.
  void back_off() { add_now(mine_.arrive, ~rma::word{0}); }

  /// Listing 10. Flushed: a writer that waits for it must not depend on our next flush.
  void depart() { add_now(mine_.depart, 1); }

  /// Listing 6, reset_counter, for a reader (M2) that has the ticket T_R while no writer is in the
  /// queue. True if a reader had departed: then ARRIVE is T_R or less again, our ticket included. 1
  /// swap, and 1 add if so.
  [[nodiscard]] bool reset_by_reader() {
    // M6: one operation takes the departures, so no other reader takes them again. M4: they are
    // subtracted from DEPART first, then from ARRIVE.
    const rma::word departed = rma::swap_now(port_, mine_.depart, 0);
    if (departed == 0) return false;
    add_now(mine_.arrive, 0 - departed);
    return true;
  }

  /// ARRIVE: the ticket that arrive() would take. No network operation if the counter is on our
  /// node, else 1 get.
  [[nodiscard]] rma::word next_ticket() {
    return here_ ? port_.load(mine_.arrive) : rma::get_now(port_, mine_.arrive);
  }

  /// Waits until no writer has the counter, and returns ARRIVE. Local if the counter is on our
  /// node.
  [[nodiscard]] rma::word await_readers_mode(rma::backoff back_off) {
    const auto no_writer = [](rma::word arrived) { return arrived < write_flag; };
    return here_ ? port_.await(mine_.arrive, no_writer)
                 : port_.poll(mine_.arrive, no_writer, back_off);
  }

  // ---- for the writer at the head of the root's queue: all counters, one flush a round ----

  /// A writer begins to wait: forgets what was read for the last one.
  void start_scan() {
    for (seen& c : all_) c.done = c.compared = false;
  }

  /// M1, first half (section 3.3.3): true once, at every counter, either no reader was in when we
  /// read it or T_R readers have entered. No more readers enter then while we are in the queue. 1
  /// round, 2 gets for each counter that is not done.
  [[nodiscard]] bool readers_had_their_share() {
    for (seen& c : all_) {
      if (c.done) continue;
      port_.get(c.at.arrive, c.arrived);
      port_.get(c.at.depart, c.departed);
    }
    port_.flush();
    for (seen& c : all_) c.done = c.done || c.arrived == c.departed || c.arrived >= t_r_;
    return all_done();
  }

  /// Listing 6, set_counters_to_WRITE: no reader enters from now on. 1 round, 1 fetch-add a
  /// counter.
  void take_from_readers() {
    for (seen& c : all_) port_.fetch_add(c.at.arrive, write_flag, c.arrived);
    port_.flush();
    for (seen& c : all_) {
      rma::ensure(c.arrived < write_flag, "one writer has the counters");
      c.arrived += write_flag;
    }
  }

  /// M1, second half: true once every reader has left. A counter is drained when ARRIVE, less the
  /// flag, equals DEPART. M4: the DEPART of this round is compared with an ARRIVE that was read in
  /// a round before. If both were read together, a reader's reset between the two reads could hide
  /// a reader. ARRIVE may be too high, because of readers that are about to back off, but not too
  /// low, since no reader enters. 1 round.
  [[nodiscard]] bool readers_are_gone() {
    for (seen& c : all_) {
      if (c.done) continue;
      port_.get(c.at.depart, c.departed);
      if (c.compared) port_.get(c.at.arrive, c.arrived_now);
    }
    port_.flush();
    for (seen& c : all_) {
      if (c.done) continue;
      rma::ensure(c.departed <= c.arrived - write_flag, "no more readers left than came");
      c.done = c.arrived - write_flag == c.departed;
      if (c.compared) c.arrived = c.arrived_now;
      c.compared = true;
    }
    return all_done();
  }

  /// Subtracts the readers that have left from both words. The flag stops readers, and no
  /// participant reads the counters in between, so the order does not matter. Flushed, since
  /// another writer may be the one that lets the readers in again. No operation at a counter that
  /// no reader used.
  void forget_departed() {
    bool posted = false;
    for (seen& c : all_) {
      if (c.departed == 0) continue;
      port_.add(c.at.depart, 0 - c.departed);
      port_.add(c.at.arrive, 0 - c.departed);
      posted = true;
    }
    if (posted) port_.flush();
  }

  /// Listing 6, reset_counters: readers may enter. 1 round, 1 add a counter.
  void give_to_readers() {
    for (seen& c : all_) port_.add(c.at.arrive, 0 - write_flag);
    port_.flush();
  }

 private:
  /// A physical counter.
  struct counter {
    counter(const cells& where, rma::rank_t host)
        : arrive(where.words.at(host)), depart(arrive + 1) {}

    rma::nic_cell arrive;  // ARRIVE: readers that arrived, and the WRITE flag
    rma::nic_cell depart;  // DEPART: readers that left
  };

  /// The values of a counter that a writer has read: the results of its posted gets.
  struct seen {
    counter at;
    rma::word arrived = 0;
    rma::word departed = 0;
    rma::word arrived_now = 0;
    bool done = false;      // nothing to wait for at this counter in this phase
    bool compared = false;  // `arrived` was used in a comparison: ARRIVE must be read again
  };

  // Greater than any count of readers, and so far below 2^64 that backing off never borrows from
  // it.
  static constexpr rma::word write_flag = rma::word{1} << 62;

  // Flushed, else a waiter would see it only when we flush something else.
  void add_now(rma::nic_cell to, rma::word value) {
    port_.add(to, value);
    port_.flush(to.home);
  }

  // True once all are done, and then ready for the next phase.
  [[nodiscard]] bool all_done() {
    for (const seen& c : all_)
      if (!c.done) return false;
    start_scan();
    return true;
  }

  Port& port_;
  rma::word t_r_;
  counter mine_;  // c(p)
  bool here_;     // c(p) is on our node
  std::pmr::vector<seen> all_;
};

}  // namespace lockflight::lock
