// Random numbers that are the same on each machine.
#pragma once

#include <cstdint>

#include "names/cluster/core/rendezvous.hpp"

namespace lockflight::cluster::sim {

class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : state_(scattered(seed + 0x9e3779b97f4a7c15u)) {}

  [[nodiscard]] std::uint64_t next() { return scattered(state_ += 0x9e3779b97f4a7c15u); }
  /// From 0 to below `end`.
  [[nodiscard]] std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(end));
  }
  [[nodiscard]] std::int64_t between(std::int64_t first, std::int64_t last) {
    return first + below(last - first + 1);
  }
  [[nodiscard]] bool one_in(std::int64_t many) { return below(many) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace lockflight::cluster::sim
