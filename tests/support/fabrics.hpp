// The fabrics that every suite runs on. Each is a type with a name and
// `run(machine, body)`, which calls `body(rma::participant<port_type>&)` once on every rank and
// throws if any rank failed. What a rank throws reaches the caller as the text of an exception.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/delaying.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/fabric/strict.hpp"
#if defined(LOCKFLIGHT_TEST_ON_MPI)
#include "support/mpi_fabrics.hpp"
#endif

namespace lockflight::test {

/// The seed of this run: LOCKFLIGHT_TEST_SEED, or 1. Failures print it.
inline std::uint64_t seed() {
  const char* const given = std::getenv("LOCKFLIGHT_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}

/// Whether the fabric has enough ranks for a machine; most have.
template <class Fabric>
[[nodiscard]] bool fits(const rma::topology& machine) {
  if constexpr (requires { Fabric::most_ranks; })
    return machine.ranks() <= Fabric::most_ranks;
  else
    return true;
}

/// How often a test repeats itself. A fabric that tries every interleaving, or is slow, sets
/// `most_rounds`.
template <class Fabric>
[[nodiscard]] constexpr int rounds(int wanted) {
  if constexpr (requires { Fabric::most_rounds; })
    return std::min(wanted, Fabric::most_rounds);
  else
    return wanted;
}

/// For checks inside ranks, which may be other processes.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what + " (seed " + std::to_string(seed()) + ")");
}

template <bool Threads>
struct shm_fabric {
  static constexpr const char* name = Threads ? "shm_threads" : "shm_processes";
  static constexpr bool shares_memory = true;  // ranks see memory mapped shared before run
  using port_type = fabric::counting<fabric::strict<shm::port>>;

  template <class Body>
  static void run(const rma::topology& machine, Body body) {
    shm::config what{.machine = machine, .threads = Threads};
    shm::run_ports(what, [&](shm::port& bare) {
      fabric::strict<shm::port> strict(bare);
      port_type p(strict);
      rma::participant<port_type> me(p, what.words_per_rank);
      body(me);
    });
  }
};
using shm_processes = shm_fabric<false>;
using shm_threads = shm_fabric<true>;

/// Shared memory as lazy and disorderly as a network may be. ThreadSanitizer and the like run it
/// too.
template <bool Threads>
struct shm_delayed_fabric {
  static constexpr const char* name = Threads ? "shm_threads_delayed" : "shm_processes_delayed";
  static constexpr bool shares_memory = true;
  using port_type = fabric::counting<fabric::strict<fabric::delaying<shm::port>>>;

  template <class Body>
  static void run(const rma::topology& machine, Body body) {
    shm::config what{.machine = machine, .threads = Threads};
    shm::run_ports(what, [&](shm::port& bare) {
      fabric::delaying<shm::port> delaying(bare, {.seed = seed()});
      fabric::strict<fabric::delaying<shm::port>> strict(delaying);
      port_type p(strict);
      rma::participant<port_type> me(p, what.words_per_rank);
      body(me);
    });
  }
};
using shm_processes_delayed = shm_delayed_fabric<false>;
using shm_threads_delayed = shm_delayed_fabric<true>;

}  // namespace lockflight::test
