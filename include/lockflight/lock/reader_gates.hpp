// What the readers of flight-rw touch, and how writers keep them out: a gate and a counter for
// those who share a cell, on their own node. gate.hpp has the values, flight_rw.hpp the protocol.
//
// Readers use their CPU's atomics and loads; writers of other nodes put gates and get counts, all
// of them at once.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory_resource>
#include <stdexcept>
#include <vector>

#include "lockflight/lock/gate.hpp"
#include "lockflight/lock/node_queue.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class reader_gates {
 public:
  /// One line on every rank; used on those that host a cell.
  struct cells {
    rma::plain_cell stations;  // at the lock's home

    static cells place(rma::layout& in, rma::rank_t home) {
      return {in.take<rma::plain_cell>(2).at(home)};
    }
  };

  /// Each element of `level` has a cell for its readers, and beyond the last level each rank; 0:
  /// each node, or each rank if there is one node.
  reader_gates(rma::participant<Port>& me, const cells& where, std::int64_t level)
      : me_(me),
        port_(me.port()),
        level_(level_of_cells(me.machine(), level)),
        mine_alone_(each_rank()),
        home_(where.stations.home),
        mine_(station_at(where.stations, host_of(me.rank()))),
        elsewhere_(me.memory()) {
    if (most_ranks_of_a_cell() > static_cast<int>(reader_count::most))
      throw std::invalid_argument("flight-rw counts at most 4095 ranks in a cell (reader_level)");
  }

  // ---- for readers: their own cell ----

  [[nodiscard]] gate look() { return gate::from(port_.load(mine_.gate)); }
  /// Adds to the counts, and later loads come after that; returns what they were. 1 CPU fetch-add,
  /// or, if the cell is ours alone, a load, a store and a fence.
  rma::word count(rma::word change) {
    if (!mine_alone_) return port_.cpu_fetch_add(mine_.counts, change);
    const rma::word before = port_.load(mine_.counts);
    port_.store(mine_.counts, before + change);
    port_.fence();  // the look at the gate comes after it (C13)
    return before;
  }
  /// Takes back what `count` has added, after all that was done meanwhile. 1 CPU fetch-add, or a
  /// load and a store.
  void uncount(rma::word change) {
    if (mine_alone_)
      port_.store(mine_.counts, port_.load(mine_.counts) - change);
    else
      static_cast<void>(port_.cpu_fetch_add(mine_.counts, 0 - change));
  }
  /// Whether it came; `seen` is the gate then, or when time was over.
  template <class Predicate, class Until>
  [[nodiscard]] bool await(Predicate done, Until until, gate& seen) {
    rma::word bits = 0;
    const bool came = rma::await(
        port_, mine_.gate, [=](rma::word now) { return done(gate::from(now)); }, until, bits);
    seen = gate::from(bits);
    return came;
  }

  enum class arrival : std::uint8_t { in, gave_up, must_open };

  /// As flight_rw.hpp has it; `held` is what the reader is then counted as. Must open: the gates
  /// are idle, the reader is not counted, and others of its cell rely on it.
  template <class Until>
  [[nodiscard]] arrival enter(Until until, rma::word& held) {
    // Who gives up and comes again must not look, each time that a writer looks, like a reader that
    // is in.
    if constexpr (!is_patient<Until>)
      if (const gate found = look(); found.what() == gate::state::closed) {
        gate now;
        const auto moved_on = [=](gate g) {
          return g.epoch() != found.epoch() || g.what() != gate::state::closed;
        };
        if (!await(moved_on, until, now)) return arrival::gave_up;
      }
    held = reader_count::active;
    count(held);
    const gate found = look();  // after it was counted: a writer that missed us closed it
    if (found.what() == gate::state::open) [[likely]]
      return arrival::in;
    return park(found.epoch(), until, held);
  }

  // ---- for the writer that holds the lock: all cells ----

  /// 1 round trip, 1 put a cell on another node. Complete at the return, since nobody waits for
  /// what we have not flushed.
  void set(gate to) {
    bool posted = false;
    for_each([&](const station& s, bool here) {
      if (here)
        port_.store(s.gate, to.bits());
      else
        port_.put(s.gate, to.bits()), posted = true;
    });
    if (posted) port_.flush();
  }

  /// The looks at the counts begin.
  void start_looking() {
    port_.fence();  // a reader that the counts do not show has yet to see the gate closed (C13)
    epoch_ = look().epoch();
    seen_any_ = false;
    if (elsewhere_.empty())
      for_each([&](const station& s, bool here) {
        if (!here) elsewhere_.push_back({s});
      });
    for (remote& r : elsewhere_) r.gone = false;
  }

  /// Whether no reader is left. 1 round trip, 1 get for each cell on another node that had readers
  /// at the last look.
  [[nodiscard]] bool readers_are_gone() {
    const bool elsewhere = gone_elsewhere();
    return gone_here() && elsewhere;
  }

  /// Until no reader is left; false if time was over first.
  template <class Until>
  [[nodiscard]] bool await_readers(Until until) {
    for (rma::backoff b(200, 20'000); !gone_elsewhere(); port_.pause(b.next()))
      if (rma::is_over(port_, until)) return false;
    if (gone_here()) return true;
    bool all = true;
    for_each([&](const station& s, bool here) {
      if (!here || !all) return;
      rma::word counts = 0;
      const auto gone = [e = epoch_](rma::word n) { return reader_count::gone(n, e); };
      all = rma::await(port_, s.counts, gone, until, counts);
    });
    return all;
  }

  /// Whether a look since start_looking has found a reader, on its way out or waiting.
  [[nodiscard]] bool seen_any() const { return seen_any_; }

 private:
  template <class Until>
  static constexpr bool is_patient = std::same_as<Until, rma::forever>;

  // A reader that is counted as active, and has found its gate not open.
  template <class Until>
  [[nodiscard]] arrival park(rma::word epoch, Until until, rma::word& held) {
    while (true) {
      const rma::word parked =
          reader_count::parked(epoch) + (is_patient<Until> ? reader_count::patient(epoch) : 0);
      const rma::word before = count(parked - held);
      held = parked;
      // The first patient one of a phase at its cell looks after the others, should the gate be
      // idle.
      const bool looks_after =
          !is_patient<Until> || reader_count::of(reader_count::patient(epoch), before) == 0;
      const auto moved_on = [=](gate g) {
        return g.epoch() != epoch || g.what() == gate::state::open ||
               (looks_after && g.what() == gate::state::idle);
      };
      gate now;
      const bool in_time = await(moved_on, until, now);
      if (now.epoch() != epoch) return arrival::in;
      if (!in_time || now.what() == gate::state::idle) {
        uncount(held);
        return in_time ? arrival::must_open : arrival::gave_up;
      }
      // Open for the same epoch, since a writer has given up: we come anew.
      count(reader_count::active - held);
      held = reader_count::active;
      now = look();
      if (now.what() == gate::state::open) return arrival::in;
      epoch = now.epoch();
    }
  }

  /// Gate and counts of those readers who share them.
  struct station {
    rma::plain_cell gate;
    rma::cpu_cell counts;
  };
  /// One on another node, and what a writer has seen there: results of gets land in it.
  struct remote {
    station at;
    rma::word counts = 0;
    bool gone = false;
  };

  [[nodiscard]] static int level_of_cells(const rma::topology& machine, std::int64_t asked) {
    const int ranks = machine.levels() + 1;
    if (asked == 0) return machine.nodes() == 1 ? ranks : machine.node_level();
    // Not above the nodes: counts are a matter of CPU atomics.
    return std::clamp(static_cast<int>(asked), machine.node_level(), ranks);
  }
  [[nodiscard]] bool each_rank() const { return level_ > me_.machine().levels(); }
  [[nodiscard]] int most_ranks_of_a_cell() const {
    const rma::topology& machine = me_.machine();
    return each_rank() ? 1 : machine.ranks() / machine.elements(level_);
  }
  [[nodiscard]] rma::rank_t host_of(rma::rank_t rank) const {
    const rma::topology& machine = me_.machine();
    if (each_rank()) return rank;
    return level_ == machine.node_level() ? node_host(machine, rank, home_)
                                          : machine.leader_of(rank, level_);
  }
  [[nodiscard]] static station station_at(rma::plain_cell stations, rma::rank_t host) {
    const rma::plain_cell line = stations.at(host);
    return {line, {line.home, line.index + 1}};
  }
  template <class Visit>
  void for_each(Visit visit) {
    const rma::topology& machine = me_.machine();
    const int stations = each_rank() ? machine.ranks() : machine.elements(level_);
    for (int i = 0; i < stations; ++i) {
      const rma::rank_t host = host_of(each_rank() ? i : machine.leader(level_, i));
      visit(station_at(mine_.gate, host), machine.same_node(host, me_.rank()));
    }
  }

  [[nodiscard]] bool gone_elsewhere() {
    bool posted = false;
    for (remote& r : elsewhere_)
      if (!r.gone) port_.get(r.at.counts, r.counts), posted = true;
    if (posted) port_.flush();
    bool all = true;
    for (remote& r : elsewhere_) {
      if (r.gone) continue;
      r.gone = reader_count::gone(r.counts, epoch_);
      seen_any_ = seen_any_ || r.counts != 0;
      all = all && r.gone;
    }
    return all;
  }

  [[nodiscard]] bool gone_here() {
    bool all = true;
    for_each([&](const station& s, bool here) {
      if (!here) return;
      const rma::word counts = port_.load(s.counts);
      seen_any_ = seen_any_ || counts != 0;
      all = all && reader_count::gone(counts, epoch_);
    });
    return all;
  }

  rma::participant<Port>& me_;
  Port& port_;
  int level_;  // whose elements share a cell; beyond the last level each rank has its own
  bool mine_alone_;
  rma::rank_t home_;
  station mine_;
  rma::word epoch_ = 0;  // that we have closed the gates for
  bool seen_any_ = false;
  std::pmr::vector<remote> elsewhere_;
};

}  // namespace lockflight::lock
