// The scan of flight-rw's reader counters by a writer that has closed the gates: it reads those of
// some nodes, all of them at once, until no reader is left there.
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
class reader_scan {
 public:
  reader_scan(rma::participant<Port>& me, const reader_layout& where)
      : me_(me),
        port_(me.port()),
        where_(where),
        nodes_(me.machine().nodes()),
        own_(me.machine().node_of(me.rank())),
        counters_(static_cast<std::size_t>(where.counters_of_node())),
        own_cells_(me.memory()),
        counts_(me.memory()),
        gone_(me.memory()) {}

  /// Begins, for a writer that has closed the gates of these nodes at `epoch`.
  void start(rma::word epoch, node_set on) {
    make_room();
    epoch_ = epoch;
    seen_ = 0;
    for (int node = 0; node < nodes_; ++node)
      std::ranges::fill(of(gone_, node), static_cast<std::uint8_t>(has(on, node) ? 0 : 1));
  }

  /// True if no reader is left on the other nodes. One round trip, 1 get for each other node where
  /// readers were left.
  [[nodiscard]] bool is_gone_elsewhere() {
    bool posted = false;
    for (int node = 0; node < nodes_; ++node) {
      if (node == own_ || is_gone(node)) continue;
      rma::get_lines(port_, where_.counter(where_.gate_of_node(me_.machine(), node).cell, 0),
                     of(counts_, node));
      posted = true;
    }
    if (posted) port_.flush();
    bool all = true;
    for (int node = 0; node < nodes_; ++node)
      if (node != own_) all = judge(node) && all;
    return all;
  }
  [[nodiscard]] bool is_gone_here() {
    if (!is_gone(own_)) rma::load_each<Port, rma::cpu_cell>(port_, own_cells_, of(counts_, own_));
    return judge(own_);
  }
  /// Until no reader is left on the own node; false if time was over first.
  template <class Until>
  [[nodiscard]] bool await_here(Until until) {
    if (is_gone_here()) return true;
    const auto gone = [e = epoch_](rma::word n) { return reader_count::from(n).is_gone(e); };
    rma::word now = 0;
    for (std::size_t i = 0; i < counters_; ++i)
      if (of(gone_, own_)[i] == 0 && !rma::await(port_, own_cells_[i], gone, until, now))
        return false;
    return true;
  }

  /// The nodes, modulo 64, where a reader was seen since `start`, on its way out or waiting.
  [[nodiscard]] node_set seen() const { return seen_; }

 private:
  // Only participants that write need it.
  void make_room() {
    if (!own_cells_.empty()) return;
    const rma::cpu_cell own = where_.gate_of(me_.machine(), me_.rank()).cell;
    for (int i = 0; i < where_.counters_of_node(); ++i)
      own_cells_.push_back(where_.counter(own, i));
    counts_.resize(counters_ * static_cast<std::size_t>(nodes_));
    gone_.resize(counts_.size());
  }
  template <class T>
  [[nodiscard]] std::span<T> of(std::pmr::vector<T>& all, int node) {
    return std::span(all).subspan(static_cast<std::size_t>(node) * counters_, counters_);
  }
  [[nodiscard]] bool is_gone(int node) {
    return std::ranges::all_of(of(gone_, node), [](std::uint8_t gone) { return gone != 0; });
  }

  // A counter whose readers have gone is not read again: a later reader sees the gate (R1).
  [[nodiscard]] bool judge(int node) {
    const auto gone = of(gone_, node);
    const auto counts = of(counts_, node);
    for (std::size_t i = 0; i < counters_; ++i) {
      if (gone[i] != 0) continue;
      if (counts[i] != 0) seen_ |= set_of(node);
      gone[i] = reader_count::from(counts[i]).is_gone(epoch_) ? 1 : 0;
    }
    return is_gone(node);
  }

  rma::participant<Port>& me_;
  Port& port_;
  reader_layout where_;
  int nodes_;
  int own_;
  std::size_t counters_;  // of a node
  rma::word epoch_ = 0;
  node_set seen_ = 0;
  std::pmr::vector<rma::cpu_cell> own_cells_;
  // Of each node its counters: what was read there (results of gets land in it), and whether no
  // reader is waited for any more.
  std::pmr::vector<rma::word> counts_;
  std::pmr::vector<std::uint8_t> gone_;
};

}  // namespace lockflight::lock
