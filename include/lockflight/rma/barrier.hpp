// A barrier over the contract, for benchmarks and tests: on every fabric, in ceil(log2 P) rounds.
#pragma once

#include <cstdint>

#include "lockflight/rma/participant.hpp"

namespace lockflight::rma {

/// Dissemination barrier (Hensgen, Finkel and Manber 1988): in round k everybody tells the rank 2^k
/// further on and hears from the one 2^k before. Network operations: 1 put each round. All
/// participants construct it at the same point of their layout.
template <port Port>
class barrier {
 public:
  explicit barrier(participant<Port>& me)
      : port_(me.port()), heard_(me.cells().template take<plain_cell>(most_rounds)) {}

  /// Returns when all participants have arrived; completes all that this one has posted.
  void arrive_and_wait() {
    port_.flush();
    ++episode_;
    const rank_t ranks = port_.machine().ranks();
    const rank_t me = port_.rank();
    std::uint32_t round = 0;
    for (rank_t step = 1; step < ranks; step *= 2, ++round) {
      // Cells hold the number of the episode: whoever is early writes a larger one, never an old
      // one.
      put_now(port_, heard_.at((me + step) % ranks) + round, episode_);
      port_.await(heard_.at(me) + round, [this](word episode) { return episode >= episode_; });
    }
  }

 private:
  static constexpr std::uint32_t most_rounds = 31;

  Port& port_;
  plain_cell heard_;
  word episode_ = 0;
};

}  // namespace lockflight::rma
