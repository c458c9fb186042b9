// The fabrics that every suite runs on. Each is a type with a name and
// `run(machine, body)`, which calls `body(rma::participant<port_type>&)` once on every rank and
// throws if any rank failed. An exception of a rank reaches the caller as the text of an exception.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/delaying.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/fabric/strict.hpp"
#include "tests/support/modes.hpp"
#if defined(LOCKFLIGHT_TEST_ON_LAUNCH)
#include "tests/support/launched_fabric.hpp"
#endif

namespace lockflight::test {

/// The seed of this run: LOCKFLIGHT_TEST_SEED, or 1. Failures print it.
inline std::uint64_t seed() {
  const char* const given = std::getenv("LOCKFLIGHT_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
}

/// True if the fabric has enough ranks for a machine, in the present mode; most have.
template <class Fabric>
[[nodiscard]] bool fits(const rma::topology& machine) {
  if constexpr (requires { Fabric::most_ranks; })
    if (machine.ranks() > Fabric::most_ranks) return false;
  return machine.ranks() <= mode_now().most_ranks;
}

/// How often a test repeats itself. A fabric that tries every interleaving, or is slow, sets
/// `most_rounds`, as may a mode.
template <class Fabric>
[[nodiscard]] int rounds(int wanted) {
  if constexpr (requires { Fabric::most_rounds; }) wanted = std::min(wanted, Fabric::most_rounds);
  return std::min(wanted, mode_now().most_rounds);
}

/// For checks inside ranks, which may be other processes.
inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what + " (seed " + std::to_string(seed()) + ")");
}

}  // namespace lockflight::test

#if defined(LOCKFLIGHT_TEST_ON_SIM)
#include "tests/support/sim_fabric.hpp"
#endif

namespace lockflight::test {

/// The modes of shared memory: how its ranks are started.
inline constexpr std::array usual_modes{
    mode{.name = "processes"},
    mode{.name = "threads", .threads = true},
};

/// Shared memory, in the present mode. With `Delayed` it is as late and disorderly as a network may
/// be.
template <bool Delayed>
struct shm_fabric {
  static constexpr const char* name = Delayed ? "shm_delayed" : "shm";
  static constexpr bool shares_memory = true;  // ranks see memory mapped shared before run
  using basis = std::conditional_t<Delayed, fabric::delaying<shm::port>, shm::port>;
  using port_type = fabric::counting<fabric::strict<basis>>;

  template <class Body>
  static void run(const rma::topology& machine, Body body) {
    run_in_mode(mode_now(), machine, body);
  }

  /// Goes on without ranks that are killed. Returns them.
  template <class Body>
  static std::vector<rma::rank_t> run_bearing_losses(const rma::topology& machine, Body body) {
    return run_in_mode(mode_now(), machine, body, [](rma::rank_t) { return true; });
  }

  template <class Body>
  static std::vector<rma::rank_t> run_in_mode(
      const mode& how, const rma::topology& machine, Body body,
      std::function<bool(rma::rank_t)> bears_loss_of = nullptr) {
    const shm::config what{.machine = machine,
                           .threads = how.threads,
                           .waiting = how.waiting,
                           .bears_loss_of = std::move(bears_loss_of)};
    return shm::run_ports(what, [&](shm::port& bare) {
      const auto on = [&](basis& port) {
        fabric::strict<basis> strict(port);
        port_type p(strict);
        rma::participant<port_type> me(p, what.words_per_rank);
        body(me);
      };
      if constexpr (Delayed) {
        basis delaying(bare, {.seed = seed()});
        on(delaying);
      } else {
        on(bare);
      }
    });
  }
};
using shm_plain = shm_fabric<false>;
using shm_delayed = shm_fabric<true>;

/// Shared memory whose ranks are processes, or threads, in every mode: for tests that need one or
/// the other.
template <bool Threads>
struct shm_always {
  using port_type = shm_plain::port_type;

  template <class Body>
  static void run(const rma::topology& machine, Body body) {
    shm_plain::run_in_mode(usual_modes[Threads ? 1 : 0], machine, body);
  }
};
using shm_processes = shm_always<false>;
using shm_threads = shm_always<true>;

}  // namespace lockflight::test
