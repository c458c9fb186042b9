// The looks at the readers' counts of flight-rw on some nodes, all of them at once, until nobody
// reads there any more: those of a writer, and of its deputy in a branch of the tree of gates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class reader_looks {
 public:
  reader_looks(rma::participant<Port>& me, const reader_cells& where)
      : me_(me),
        port_(me.port()),
        where_(where),
        rows_(me.memory()),
        cells_(me.memory()),
        counts_(me.memory()),
        gone_(me.memory()) {}

  /// The looks are at the nodes from `first` until before `past`.
  void list(int first, int past) {
    if (!rows_.empty()) return;
    const int own = me_.machine().node_of(me_.rank());
    where_.for_each_row(me_.machine(), first, past,
                        [&](int node, rma::cpu_cell from, int lines, bool together) {
                          add(node, from, static_cast<std::size_t>(lines), together, node == own);
                        });
    counts_.resize(cells_.size());
  }

  /// They begin, at gates that say this, on the nodes that have such a one.
  template <class Has>
  void start(gate now, Has has) {
    now_ = now;
    seen_ = 0;
    for (const row& r : rows_) has(r.node) ? begin(r) : leave(r);
  }
  /// Not, or after all, on the nodes from `first` until before `past`.
  void leave_out(int first, int past) {
    for (const row& r : of_nodes(first, past)) leave(r);
  }
  void take_in(int first, int past) {
    for (const row& r : of_nodes(first, past)) begin(r);
  }

  /// 1 get for each row of cells on another node that had readers at the last look; whether there
  /// are any. To be flushed before gone_elsewhere.
  [[nodiscard]] bool post() {
    bool posted = false;
    for (const row& r : rows_) {
      if (r.here || has_gone(r)) continue;
      rma::get_lines(port_, cells_[r.first], counts_of(r));
      posted = true;
    }
    return posted;
  }
  [[nodiscard]] bool gone_elsewhere() {
    bool all = true;
    for (const row& r : rows_)
      if (!r.here) all = judge(r) && all;
    return all;
  }
  [[nodiscard]] bool gone_here() {
    bool all = true;
    for (const row& r : rows_) {
      if (!r.here || has_gone(r)) continue;
      rma::load_each(port_, cells_of(r), counts_of(r));
      all = judge(r) && all;
    }
    return all;
  }
  /// Until no reader is left on the own node; false if time was over first.
  template <class Until>
  [[nodiscard]] bool await_here(Until until) {
    if (gone_here()) return true;
    const auto gone = [e = now_.epoch()](rma::word n) { return reader_count::gone(n, e); };
    for (const row& r : rows_)
      for (std::size_t i = r.first; r.here && i < r.past; ++i)
        if (!gone_[i] && !rma::await(port_, cells_[i], gone, until, counts_[i])) return false;
    return true;
  }

  /// The nodes, modulo 64, where a look since `start` has found a reader, on its way out or
  /// waiting.
  [[nodiscard]] rma::word seen() const { return seen_; }
  void has_seen_some() { seen_ = ~rma::word{0}; }

  /// The cells that readers count themselves in at such a gate, all or those of the own node.
  [[nodiscard]] rma::word used_cells(gate now, bool of_here) const {
    rma::word cells = 0;
    for (const row& r : rows_)
      if (is_used(r, now) && (r.here || !of_here)) cells += r.past - r.first;
    return cells;
  }
  /// What up to 4 of the own node hold.
  template <class Visit>
  void for_some_here(gate now, Visit visit) {
    constexpr rma::word most_looks = 4;
    rma::word here = used_cells(now, true);
    const rma::word step = (here + most_looks - 1) / most_looks;
    for (const row& r : rows_)
      for (std::size_t i = r.first; r.here && is_used(r, now) && i < r.past; ++i)
        if (here-- % step == 0) visit(port_.load(cells_[i]));
  }

 private:
  /// Cells from `first` until before `past`, on lines in a row if they are elsewhere.
  struct row {
    std::size_t first;
    std::size_t past;
    int node;
    bool together;
    bool here;
  };
  // Those of the own node that are of one kind are looked at together, whether they lie in a row or
  // not.
  void add(int node, rma::cpu_cell from, std::size_t lines, bool together, bool here) {
    const bool goes_on = here && !rows_.empty() && rows_.back().together == together;
    if (!goes_on || !rows_.back().here)
      rows_.push_back({cells_.size(), cells_.size(), node, together, here});
    for (std::size_t i = 0; i < lines; ++i) {
      cells_.push_back(from);
      from = from + rma::line_words;
    }
    rows_.back().past = cells_.size();
    gone_.resize(cells_.size());
  }
  [[nodiscard]] bool is_used(const row& r, gate now) const { return r.together == now.gathered(); }
  // After a move those who parked before it are still counted in the other cells.
  void begin(const row& r) { set_gone(r, !now_.moved() && !is_used(r, now_)); }
  void leave(const row& r) { set_gone(r, true); }
  void set_gone(const row& r, bool gone) {
    for (std::size_t i = r.first; i < r.past; ++i) gone_[i] = gone;
  }
  [[nodiscard]] bool has_gone(const row& r) const {
    for (std::size_t i = r.first; i < r.past; ++i)
      if (!gone_[i]) return false;
    return true;
  }
  [[nodiscard]] std::span<const rma::cpu_cell> cells_of(const row& r) const {
    return std::span(cells_).subspan(r.first, r.past - r.first);
  }
  [[nodiscard]] std::span<rma::word> counts_of(const row& r) {
    return std::span(counts_).subspan(r.first, r.past - r.first);
  }
  [[nodiscard]] std::span<const row> of_nodes(int first, int past) const {
    const auto from = std::ranges::lower_bound(rows_, first, {}, &row::node);
    return {from, std::ranges::lower_bound(rows_, past, {}, &row::node)};
  }
  // After a look. Who has gone once is not waited for when somebody comes, who will see the gate.
  [[nodiscard]] bool judge(const row& r) {
    bool all = true;
    for (std::size_t i = r.first; i < r.past; ++i) {
      if (gone_[i]) continue;
      if (counts_[i] != 0) seen_ |= rma::word{1} << static_cast<unsigned>(r.node % 64);
      gone_[i] = reader_count::gone(counts_[i], now_.epoch());
      all = gone_[i] && all;
    }
    return all;
  }

  rma::participant<Port>& me_;
  Port& port_;
  reader_cells where_;
  gate now_;  // at which the looks began
  rma::word seen_ = 0;
  std::pmr::vector<row> rows_;             // in the order of their nodes
  std::pmr::vector<rma::cpu_cell> cells_;  // of all of them
  std::pmr::vector<rma::word> counts_;     // what was seen there: results of gets land in it
  std::pmr::vector<std::uint8_t> gone_;    // whether nobody is waited for there
};

}  // namespace lockflight::lock
