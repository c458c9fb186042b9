// The fabric of a test binary whose ranks a launch has started, by MPI, on UCX or on OpenSHMEM: all
// ranks run the same tests in lock step, and each run of a test uses the first of them. Its port is
// the same type on all three networks, so tests are compiled once for them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/launch.hpp"
#include "lockflight/fabric/networked.hpp"
#include "lockflight/fabric/strict.hpp"
#include "lockflight/rma/participant.hpp"
#include "tests/support/modes.hpp"

namespace lockflight::test {

/// Nodes of a machine are held to what the network offers between nodes; or all ranks that share
/// memory use CPU instructions on each other's cells, whatever the node. Between nodes an operation
/// takes microseconds, and with more ranks than cores time slices of the kernel, which other
/// programs may use in between: fewer rounds.
inline constexpr mode launched_nodes{.name = "nodes", .most_rounds = 60};
inline constexpr mode launched_shared{.name = "shared", .shared_nodes = true, .most_rounds = 300};

struct launched_fabric {
  static constexpr const char* name = "launched";
  static constexpr bool shares_memory = false;     // memory mapped before a run is each rank's own
  static constexpr bool survives_failure = false;  // the launch ends with the rank
  static inline int most_ranks = 1;                // of this launch
  static inline rma::topology hosts = rma::topology::flat(1);
  using port_type = fabric::counting<fabric::strict<fabric::networked_port>>;

  /// The run_ports of this launch's fabric.
  using run_function = std::function<void(const fabric::run_config&,
                                          const std::function<void(fabric::networked_port&)>&)>;
  static inline run_function run_ports;

  /// The launch that this process is a rank of, by node.
  static void launched(rma::topology nodes, run_function run) {
    constexpr int quick = 4;
    most_ranks = nodes.ranks();
    hosts = std::move(nodes);
    run_ports = std::move(run);
    if (most_ranks > quick)
      for (detail::offer& each : detail::offered()) each.what.most_rounds /= 20;
  }

  /// True if the ranks of each node of the machine share memory.
  [[nodiscard]] static bool has_room_for(const rma::topology& machine) {
    for (rma::rank_t r = 0; r < machine.ranks(); ++r)
      if (!hosts.same_node(r, machine.leader_of(r, machine.node_level()))) return false;
    return true;
  }

  template <class Body>
  static void run(const rma::topology& machine, Body body) {
    if (!has_room_for(machine))
      GTEST_SKIP() << "a node of this test's machine has ranks that share no memory here";
    // Small segments: MPI caches the memory of a few dozen machines from one run to the next.
    const fabric::run_config what{
        .machine = machine, .words_per_rank = 1u << 14, .shared_nodes = mode_now().shared_nodes};
    run_ports(what, [&](fabric::networked_port& bare) {
      fabric::strict<fabric::networked_port> strict(bare);
      port_type p(strict);
      rma::participant<port_type> me(p, what.words_per_rank);
      body(me);
    });
  }
};

}  // namespace lockflight::test
