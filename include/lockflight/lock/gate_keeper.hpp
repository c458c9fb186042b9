// What the writer that holds flight does with flight-rw's gates and its readers' counts, those of
// all nodes: it puts the gates and gets the counts, all of them at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <stdexcept>
#include <vector>

#include "lockflight/lock/gate.hpp"
#include "lockflight/lock/reader_cells.hpp"
#include "lockflight/lock/turn_policy.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class gate_keeper {
 public:
  gate_keeper(rma::participant<Port>& me, const reader_cells& where)
      : me_(me),
        port_(me.port()),
        where_(where),
        gate_(where.gate_of(me.machine(), me.rank())),
        all_(me.memory()) {
    const int of_node = reader_cells::ranks_of_a_node(me.machine());
    const int most =
        where.several() ? std::max(where.ranks_of_a_cell, where.ranks_together) : of_node;
    if (most > static_cast<int>(reader_count::most))
      throw std::invalid_argument("flight-rw counts at most 4095 ranks in a cell (ranks_per_cell)");
  }

  /// 1 round trip, 1 put for each other node. Complete at the return, since nobody waits for what
  /// we have not flushed.
  void set(gate to) {
    bool posted = false;
    where_.for_each_gate(me_.machine(), [&](rma::plain_cell of) {
      if (of == gate_)
        port_.store(of, to.bits());
      else
        port_.put(of, to.bits()), posted = true;
    });
    if (posted) port_.flush();
  }

  /// The looks at the counts begin.
  void start_looking() {
    const gate now = look();
    // A reader that the counts do not show has yet to see the gate closed: by our fence and its own
    // (C13), or, if it does without, by the one that we bring it to (C40).
    if (now.biased() && now.what() == gate::state::closed)
      rma::fence_node(port_);
    else
      port_.fence();
    epoch_ = now.epoch();
    seen_any_ = false;
    list_all();
    // After a move those who parked before it are still counted in the other cells.
    for (looked_at& c : all_) c.gone = !now.moved() && !is_used(c, now);
  }

  /// Whether no reader is left. 1 round trip, 1 get for each cell on another node that had readers
  /// at the last look.
  [[nodiscard]] bool readers_are_gone() {
    const bool elsewhere = gone_elsewhere();
    return gone_here() && elsewhere;
  }

  /// Whether nobody reads or waits to: a look at the own node, and if nobody does there 1 round
  /// trip, 1 get for each cell elsewhere.
  [[nodiscard]] bool nobody_is_there() {
    start_looking();
    static_cast<void>(gone_here());
    if (!seen_any_) static_cast<void>(gone_elsewhere());
    return !seen_any_;
  }

  /// Until no reader is left; false if time was over first.
  template <class Until>
  [[nodiscard]] bool await_readers(Until until) {
    for (rma::backoff b(200, 20'000); !gone_elsewhere(); port_.pause(b.next()))
      if (rma::is_over(port_, until)) return false;
    if (gone_here()) return true;
    const auto gone = [e = epoch_](rma::word n) { return reader_count::gone(n, e); };
    for (looked_at& c : all_)
      if (!c.gone && !rma::await(port_, cell_of(c), gone, until, c.counts)) return false;
    return true;
  }

  /// Whether a look since start_looking has found a reader, on its way out or waiting.
  [[nodiscard]] bool seen_any() const { return seen_any_; }

  /// Of a turn of so many writers. Who waits is told by up to 4 cells of the own node, if asked.
  [[nodiscard]] ended_turn ended(rma::word writers, const turn_policy& by) {
    const gate now = look();
    list_all();
    ended_turn seen{.writers = writers, .cells = used_cells(now, false)};
    if (!by.asks_who_waits(now, seen)) return seen;
    rma::word looks = 0;
    for_some_here(now, [&](rma::word counts) {
      seen.waiting += reader_count::sum(counts);
      ++looks;
    });
    seen.waiting = seen.waiting * seen.cells / looks;
    return seen;
  }

  /// Stays away while the gates are open and somebody reads here, but not for longer than that.
  template <class Until>
  void let_readers_come(Until until, std::uint64_t nanoseconds) {
    if (nanoseconds == 0) return;
    const auto turn = port_.deadline_in(nanoseconds);
    while (somebody_reads_here() && !rma::is_over(port_, turn) && !rma::is_over(port_, until))
      port_.pause(nanoseconds / looks_a_turn);
  }

 private:
  static constexpr std::uint64_t looks_a_turn = 8;

  [[nodiscard]] gate look() { return gate::from(port_.load(gate_)); }

  /// A cell on any node, and what a writer has seen there: results of gets land in it.
  struct looked_at {
    rma::word counts = 0;
    rma::rank_t host = 0;
    bool together = false;
    bool here = false;
    bool gone = false;
  };
  [[nodiscard]] rma::cpu_cell cell_of(const looked_at& c) const {
    return where_.at(c.host, c.together);
  }
  [[nodiscard]] bool is_used(const looked_at& c, gate now) const {
    return c.together == now.gathered();
  }

  // At open gates, as far as up to 4 cells of the own node tell.
  [[nodiscard]] bool somebody_reads_here() {
    const gate now = look();
    if (now.what() != gate::state::open) return false;
    list_all();
    rma::word active = 0;
    for_some_here(
        now, [&](rma::word counts) { active += reader_count::of(reader_count::active, counts); });
    return active > 0;
  }
  [[nodiscard]] rma::word used_cells(gate now, bool of_here) const {
    rma::word cells = 0;
    for (const looked_at& c : all_)
      if (is_used(c, now) && (c.here || !of_here)) ++cells;
    return cells;
  }
  // What up to 4 cells of the own node hold.
  template <class Visit>
  void for_some_here(gate now, Visit visit) {
    constexpr rma::word most_looks = 4;
    rma::word here = used_cells(now, true);
    const rma::word step = (here + most_looks - 1) / most_looks;
    for (const looked_at& c : all_)
      if (c.here && is_used(c, now) && here-- % step == 0) visit(port_.load(cell_of(c)));
  }

  void list_all() {
    if (!all_.empty()) return;
    const rma::topology& machine = me_.machine();
    where_.for_each_host(machine, me_.memory(), [&](rma::rank_t host, bool together) {
      all_.push_back(
          {.host = host, .together = together, .here = machine.same_node(host, me_.rank())});
    });
  }

  [[nodiscard]] bool gone_elsewhere() {
    bool posted = false;
    for (looked_at& c : all_)
      if (!c.here && !c.gone) port_.get(cell_of(c), c.counts), posted = true;
    if (posted) port_.flush();
    bool all = true;
    for (looked_at& c : all_)
      if (!c.here && !c.gone) all = is_gone(c) && all;
    return all;
  }

  [[nodiscard]] bool gone_here() {
    bool all = true;
    for (looked_at& c : all_) {
      if (!c.here || c.gone) continue;
      c.counts = port_.load(cell_of(c));
      all = is_gone(c) && all;
    }
    return all;
  }

  [[nodiscard]] bool is_gone(looked_at& c) {
    seen_any_ = seen_any_ || c.counts != 0;
    c.gone = reader_count::gone(c.counts, epoch_);
    return c.gone;
  }

  rma::participant<Port>& me_;
  Port& port_;
  reader_cells where_;
  rma::plain_cell gate_;  // of our node
  rma::word epoch_ = 0;   // that the gates are closed for
  bool seen_any_ = false;
  std::pmr::vector<looked_at> all_;
};

}  // namespace lockflight::lock
