// The looks at the readers' counts of flight-rw on some nodes, all of them at once, until nobody
// reads there any more: those of a writer, and of its deputy in a branch of the tree of gates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <utility>
#include <vector>

#include "lockflight/lock/gate.hpp"
#include "lockflight/lock/reader_cells.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class reader_looks {
 public:
  reader_looks(rma::participant<Port>& me, const reader_cells& where)
      : me_(me), port_(me.port()), where_(where), all_(me.memory()) {}

  /// The looks are at the nodes from `first` until before `past`.
  void list(int first, int past) {
    if (!all_.empty()) return;
    const rma::topology& machine = me_.machine();
    where_.for_each_host(machine, first, past, me_.memory(), [&](rma::rank_t host, bool together) {
      const int node = machine.node_of(host);
      const bool here = node == machine.node_of(me_.rank());
      all_.push_back({.host = host, .node = node, .together = together, .here = here});
    });
    if (!std::ranges::is_sorted(all_, {}, &looked_at::node))
      std::ranges::sort(all_, {}, [](const looked_at& c) { return std::pair(c.node, c.host); });
  }

  /// They begin, at gates that say this, on the nodes that have such a one.
  template <class Has>
  void start(gate now, Has has) {
    now_ = now;
    seen_ = 0;
    for (looked_at& c : all_) {
      begin(c);
      c.gone = c.gone || !has(c.node);
    }
  }
  /// Not, or after all, on the nodes from `first` until before `past`.
  void leave_out(int first, int past) {
    for (looked_at& c : of_nodes(first, past)) c.gone = true;
  }
  void take_in(int first, int past) {
    for (looked_at& c : of_nodes(first, past)) begin(c);
  }

  /// 1 get for each cell on another node that had readers at the last look; whether there are any.
  /// To be flushed before gone_elsewhere.
  [[nodiscard]] bool post() {
    bool posted = false;
    for (looked_at& c : all_)
      if (!c.here && !c.gone) port_.get(cell_of(c), c.counts), posted = true;
    return posted;
  }
  [[nodiscard]] bool gone_elsewhere() {
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
  /// Until no reader is left on the own node; false if time was over first.
  template <class Until>
  [[nodiscard]] bool await_here(Until until) {
    if (gone_here()) return true;
    const auto gone = [e = now_.epoch()](rma::word n) { return reader_count::gone(n, e); };
    for (looked_at& c : all_)
      if (!c.gone && !rma::await(port_, cell_of(c), gone, until, c.counts)) return false;
    return true;
  }

  /// The nodes, modulo 64, where a look since `start` has found a reader, on its way out or
  /// waiting.
  [[nodiscard]] rma::word seen() const { return seen_; }
  void has_seen_some() { seen_ = ~rma::word{0}; }

  /// The cells that readers count themselves in at such a gate, all or those of the own node.
  [[nodiscard]] rma::word used_cells(gate now, bool of_here) const {
    rma::word cells = 0;
    for (const looked_at& c : all_)
      if (is_used(c, now) && (c.here || !of_here)) ++cells;
    return cells;
  }
  /// What up to 4 of the own node hold.
  template <class Visit>
  void for_some_here(gate now, Visit visit) {
    constexpr rma::word most_looks = 4;
    rma::word here = used_cells(now, true);
    const rma::word step = (here + most_looks - 1) / most_looks;
    for (const looked_at& c : all_)
      if (c.here && is_used(c, now) && here-- % step == 0) visit(port_.load(cell_of(c)));
  }

 private:
  /// A cell, and what was seen there: results of gets land in it.
  struct looked_at {
    rma::word counts = 0;
    rma::rank_t host = 0;
    int node = 0;
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
  // After a move those who parked before it are still counted in the other cells.
  void begin(looked_at& c) const { c.gone = !now_.moved() && !is_used(c, now_); }
  [[nodiscard]] std::span<looked_at> of_nodes(int first, int past) {
    const auto from = std::ranges::lower_bound(all_, first, {}, &looked_at::node);
    return {from, std::ranges::lower_bound(all_, past, {}, &looked_at::node)};
  }
  [[nodiscard]] bool is_gone(looked_at& c) {
    if (c.counts != 0) seen_ |= rma::word{1} << static_cast<unsigned>(c.node % 64);
    c.gone = reader_count::gone(c.counts, now_.epoch());
    return c.gone;
  }

  rma::participant<Port>& me_;
  Port& port_;
  reader_cells where_;
  gate now_;  // at which the looks began
  rma::word seen_ = 0;
  std::pmr::vector<looked_at> all_;
};

}  // namespace lockflight::lock
