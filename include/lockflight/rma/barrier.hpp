// A barrier over the contract, for benchmarks and tests. It works on every fabric, and a
// participant can use it as often as it likes.
//
// Source: the dissemination barrier of Hensgen, Finkel and Manber (1988). In round k a participant
// writes to the rank 2^k further on and waits for the rank 2^k before it.
//
// With more than `most_in_rounds` participants, which only a simulator has, arrivals go up a binary
// tree and the release comes down again. Where ranks can be lost (C39), all participants meet at
// rank 0, which does not wait for lost ranks.
//
// Cost in network operations, P participants:
// |                   | puts of a participant | rounds         |
// | dissemination     | ceil(log2 P)          | ceil(log2 P)   |
// | tree              | 2 on average          | 2 ceil(log2 P) |
// | ranks can be lost | 1; rank 0: P - 1      | 2              |
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockflight/rma/participant.hpp"

namespace lockflight::rma {

/// All participants construct it at the same point of their layout.
template <port Port>
class barrier {
 public:
  explicit barrier(participant<Port>& me)
      : port_(me.port()), heard_(me.cells().template take<plain_cell>(most_rounds)) {
    if (may_lose(port_))
      arrived_ = me.cells()
                     .template take<plain_cell>(static_cast<std::uint32_t>(me.machine().ranks()))
                     .at(never_lost);
  }

  /// Returns when all participants have arrived; completes all that this one has posted.
  void arrive_and_wait() {
    port_.flush();
    ++episode_;
    const rank_t ranks = port_.machine().ranks();
    const rank_t me = port_.rank();
    if (may_lose(port_)) return me == never_lost ? gather_and_let_go(ranks) : be_gathered(me);
    if (ranks > most_in_rounds) return climb_and_descend(ranks, me);
    std::uint32_t round = 0;
    for (rank_t step = 1; step < ranks; step *= 2, ++round) {
      // A cell holds the number of the episode: a participant that is early writes a larger number,
      // never an old one.
      put_now(port_, heard_.at((me + step) % ranks) + round, episode_);
      await_word(round);
    }
  }

 private:
  static constexpr rank_t most_in_rounds = 4096;
  static constexpr rank_t never_lost = 0;

  void gather_and_let_go(rank_t ranks) {
    const auto has_arrived = [this](word episode) { return episode >= episode_; };
    for (rank_t r = 1; r < ranks; ++r)
      await_unless_lost(port_, arrived_ + static_cast<std::uint32_t>(r), has_arrived, r);
    for (rank_t r = 1; r < ranks; ++r) port_.put(heard_.at(r), episode_);
    port_.flush();
  }
  void be_gathered(rank_t me) {
    put_now(port_, arrived_ + static_cast<std::uint32_t>(me), episode_);
    await_word(0);
  }

  // Words 0 and 1: the subtree of the first or second child has arrived. Word 2: all have arrived.
  void climb_and_descend(rank_t ranks, rank_t me) {
    constexpr std::uint32_t all = 2;
    const std::int64_t first_child = 2 * std::int64_t{me} + 1;
    const auto children = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(std::int64_t{ranks} - first_child, 0, 2));
    for (std::uint32_t child = 0; child < children; ++child) await_word(child);
    if (me != 0) {
      put_now(port_, heard_.at((me - 1) / 2) + static_cast<std::uint32_t>((me - 1) % 2), episode_);
      await_word(all);
    }
    for (std::uint32_t child = 0; child < children; ++child)
      port_.put(heard_.at(static_cast<rank_t>(first_child + child)) + all, episode_);
    port_.flush();
  }

  void await_word(std::uint32_t which) {
    port_.await(heard_.at(port_.rank()) + which,
                [this](word episode) { return episode >= episode_; });
  }

  static constexpr std::uint32_t most_rounds = 31;

  Port& port_;
  plain_cell heard_;
  plain_cell arrived_{};  // [rank], where ranks can be lost
  word episode_ = 0;
};

}  // namespace lockflight::rma
