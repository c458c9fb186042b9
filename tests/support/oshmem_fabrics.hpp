// The fabrics of a test binary whose ranks are those of an OpenSHMEM launch: all ranks run the same
// tests in lock step, and each run of a test uses the first of them.
#pragma once

#include <gtest/gtest.h>

#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/oshmem.hpp"
#include "lockflight/fabric/strict.hpp"
#include "support/modes.hpp"

namespace lockflight::test {

/// As the modes of UCX: nodes are held to what SHMEM offers between nodes, or all ranks whose
/// memory shmem_ptr reaches use CPU instructions on it.
inline constexpr mode oshmem_nodes{.name = "nodes", .most_rounds = 60};
inline constexpr mode oshmem_shared{.name = "shared", .shared_nodes = true, .most_rounds = 300};

struct oshmem_fabric {
  static constexpr const char* name = "oshmem";
  static constexpr bool shares_memory = false;     // memory mapped before a run is each rank's own
  static constexpr bool survives_failure = false;  // the launch ends with the rank
  static inline int most_ranks = 1;                // of this launch
  static inline oshmem::environment* world = nullptr;
  static inline rma::topology hosts = rma::topology::flat(1);
  using port_type = fabric::counting<fabric::strict<oshmem::port>>;

  /// The launch that this process is a rank of.
  static void launched(oshmem::environment& in) {
    world = &in;
    most_ranks = in.size();
    hosts = oshmem::discover(in, in.size()).machine;
  }

  /// Whether shmem_ptr reaches all ranks of each node of the machine.
  [[nodiscard]] static bool has_room_for(const rma::topology& machine) {
    for (rma::rank_t r = 0; r < machine.ranks(); ++r)
      if (!hosts.same_node(r, machine.leader_of(r, machine.node_level()))) return false;
    return true;
  }

  template <class Body>
  static void run(const rma::topology& machine, Body body) {
    if (!has_room_for(machine))
      GTEST_SKIP() << "a node of this test's machine has ranks that shmem_ptr does not reach";
    const oshmem::config what{
        .machine = machine, .words_per_rank = 1u << 14, .shared_nodes = mode_now().shared_nodes};
    oshmem::run_ports(*world, what, [&](oshmem::port& bare) {
      fabric::strict<oshmem::port> strict(bare);
      port_type p(strict);
      rma::participant<port_type> me(p, what.words_per_rank);
      body(me);
    });
  }
};

}  // namespace lockflight::test
