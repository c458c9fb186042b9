// fompi-a: no lock. The hash table of workload dht is safe by its own compare-and-swaps; the
// difference to this is the cost of a lock.
#pragma once

#include <array>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::bench {

struct no_lock_parameters {
  [[nodiscard]] static constexpr std::array<lock::parameter<no_lock_parameters>, 0> all() {
    return {};
  }
};

template <rma::port Port>
class no_lock {
 public:
  static constexpr lock::facts about{
      .name = "fompi-a",
      .what = lock::kind::rw,
      .source =
          "foMPI-A, compare-and-swap only: High-Performance Distributed RMA Locks, section 5.3",
      .bytes_home = 0,
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
  };
  using excludes_nobody = void;
  using parameters = no_lock_parameters;
  struct cells {
    static cells place(rma::layout&, const rma::topology&, const parameters&, rma::rank_t) {
      return {};
    }
  };

  no_lock(rma::participant<Port>&, const cells&, const parameters& = {}) {}

  void lock() {}
  void unlock() {}
  void lock_shared() {}
  void unlock_shared() {}
};

}  // namespace lockflight::bench
