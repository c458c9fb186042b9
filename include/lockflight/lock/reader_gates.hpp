// What the readers of flight-rw touch, and how writers keep them out: a gate and a counter for
// those who share a cell, on their own node. flight_rw.hpp says what the values mean.
//
// Readers use their CPU's atomics and loads; writers of other nodes put gates and get counts, all
// of them at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <stdexcept>
#include <vector>

#include "lockflight/lock/node_queue.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// What a gate says. Zeroed memory is open. Epochs are told apart modulo 4: nobody who has parked
/// at e waits longer than until e + 1 is closed, since its writer waits for who has.
class gate {
 public:
  enum class state : std::uint8_t {
    open = 0,
    closed = 1,  // a writer is in or coming, and will open it
    idle = 2,    // no writer need be there: who wants it open must do it
  };

  constexpr gate() = default;
  constexpr gate(state s, rma::word epoch, rma::word quiet)
      : bits_((epoch & 3) << 4 | quiet << 2 | static_cast<rma::word>(s)) {}
  [[nodiscard]] static constexpr gate from(rma::word bits) {
    gate g;
    g.bits_ = bits;
    return g;
  }
  [[nodiscard]] constexpr rma::word bits() const { return bits_; }
  [[nodiscard]] constexpr state what() const { return static_cast<state>(bits_ & 3); }
  [[nodiscard]] constexpr rma::word quiet() const { return bits_ >> 2 & 3; }
  [[nodiscard]] constexpr rma::word epoch() const { return bits_ >> 4; }

 private:
  rma::word bits_ = 0;  // 2 of the state, 2 of closings in a row without a reader, 2 of the epoch
};

/// The readers of a cell, in one word: how many are active, how many are left of those who parked
/// in the even and in the odd phases, and how many of these wait until they get in; 12 bits each.
namespace reader_count {
constexpr int bits = 12;
constexpr rma::word most = (rma::word{1} << bits) - 1;
constexpr rma::word active = 1;
[[nodiscard]] constexpr rma::word parked(rma::word epoch) {
  return rma::word{1} << (epoch % 2 == 0 ? bits : 2 * bits);
}
[[nodiscard]] constexpr rma::word patient(rma::word epoch) {
  return rma::word{1} << (epoch % 2 == 0 ? 3 * bits : 4 * bits);
}
[[nodiscard]] constexpr rma::word of(rma::word one, rma::word counts) {
  return counts / one & most;
}
/// Whether the writer that has closed the gates for `epoch` may enter.
[[nodiscard]] constexpr bool gone(rma::word counts, rma::word epoch) {
  return of(active, counts) == 0 && of(parked(epoch - 1), counts) == 0;
}
}  // namespace reader_count

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

  /// Whether those are gone who parked for the epoch before the one that we have closed the gates
  /// for; none come any more. 1 round trip, 1 get for each cell on another node.
  [[nodiscard]] bool former_readers_are_gone() {
    const auto gone = [this](rma::word counts) {
      return reader_count::of(reader_count::parked(epoch_ - 1), counts) == 0;
    };
    for (remote& r : elsewhere_) port_.get(r.at.counts, r.counts);
    if (!elsewhere_.empty()) port_.flush();
    bool all = std::all_of(elsewhere_.begin(), elsewhere_.end(),
                           [&](const remote& r) { return gone(r.counts); });
    for_each(
        [&](const station& s, bool here) { all = all && (!here || gone(port_.load(s.counts))); });
    return all;
  }

  /// Whether a look since start_looking has found a reader, on its way out or waiting.
  [[nodiscard]] bool seen_any() const { return seen_any_; }

 private:
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
