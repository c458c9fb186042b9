// How the home's node and the head of the leaders' queue agree which of them has flight: by reads
// and writes alone, since one has its CPU's atomics and the other the fabric's.
//
// Source: "ALock: Asymmetric Lock Primitive for RDMA Systems", section 5, Algorithm 4.
// The word of the home's node says whether the home's node is interested, and the tail of the
// leaders' queue says whether the others are. A side that finds the other side not interested has
// the lock. Otherwise it becomes the victim and waits until the other side is not interested or is
// itself the victim (I5).
// Fairness bound: the victim waits for one turn of the other side, which becomes the victim when it
// comes again. The queues bound how many acquires a turn has.
#pragma once

#include <cstdint>

#include "lockflight/lock/flight/node_word.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::lock {

template <rma::port Port>
class peterson {
 public:
  enum class outcome : std::uint8_t { other_is_away, other_is_victim, gave_up };

  peterson(Port& p, rma::plain_cell victim, rma::cpu_cell home_word)
      : port_(p), victim_(victim), home_word_(home_word) {}

  /// For the holder of the home's word, which took it by an atomic: the reads come after it (C14).
  /// 1 read; if the others are interested, a store, a fence and more reads, with back-off.
  template <class Until, class AreAway>
  [[nodiscard]] outcome agree_at_home(Until until, AreAway others_are_away) {
    if (others_are_away()) return outcome::other_is_away;
    port_.store(victim_, local_side);
    port_.fence();  // the reads come after it (C13): I5
    for (auto b = rma::backoff::gentle(50, 2'000);; port_.pause(b.next())) {
      // Each condition alone suffices, so the order of the two reads does not matter.
      if (others_are_away()) return outcome::other_is_away;
      if (port_.load(victim_) != local_side) return outcome::other_is_victim;
      if (rma::is_over(port_, until)) return outcome::gave_up;
    }
  }

  /// For the head of the leaders' queue. `home` is the home's word, read after our node entered
  /// that queue; it is read again if it says that the home's node is interested. 1 put and 2 gets
  /// for each poll, with back-off.
  template <class Until>
  [[nodiscard]] outcome agree_from_elsewhere(Until until, rma::word& home) {
    if (!node_word::from(home).is_interested()) return outcome::other_is_away;
    give_way();
    for (auto b = rma::backoff::gentle(500, 64'000);; port_.pause(b.next())) {
      rma::word victim = 0;
      port_.get(home_word_, home);
      port_.get(victim_, victim);
      port_.flush(victim_.home);
      if (!node_word::from(home).is_interested()) return outcome::other_is_away;
      if (victim != remote_side) return outcome::other_is_victim;
      if (rma::is_over(port_, until)) return outcome::gave_up;
    }
  }
  /// For the head of the leaders' queue: becomes the victim, so that the home's node does not wait
  /// for it, whatever the tail says.
  // Flushed: its reads come after it.
  void give_way() { rma::put_now(port_, victim_, remote_side); }

 private:
  // Values of `victim`. Zeroed memory names nobody.
  static constexpr rma::word local_side = 1;
  static constexpr rma::word remote_side = 2;

  Port& port_;
  rma::plain_cell victim_;   // the side that lets the other one go first
  rma::cpu_cell home_word_;  // the home's node's: its flag
};

}  // namespace lockflight::lock
