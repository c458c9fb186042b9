// The fabrics of a test binary whose ranks meet at a rendezvous: all ranks run the same tests in
// lock step, and each run of a test uses the first of them.
#pragma once

#include <gtest/gtest.h>

#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/strict.hpp"
#include "lockflight/fabric/ucx.hpp"
#include "support/modes.hpp"

namespace lockflight::test {

/// The modes of UCX: nodes of a machine are held to what UCX offers between nodes; or all of this
/// host's ranks use CPU instructions on each other's cells, whatever the node. Between nodes an
/// operation takes microseconds, and with more ranks than cores time slices of the kernel: fewer
/// rounds.
inline constexpr mode ucx_nodes{.name = "nodes", .most_rounds = 60};
inline constexpr mode ucx_shared{.name = "shared", .shared_nodes = true, .most_rounds = 300};

struct ucx_fabric {
  static constexpr const char* name = "ucx";
  static constexpr bool shares_memory = false;     // memory mapped before a run is each rank's own
  static constexpr bool survives_failure = false;  // the launch ends with the rank
  static inline int most_ranks = 1;                // of this launch
  static inline ucx::environment* world = nullptr;
  static inline rma::topology hosts = rma::topology::flat(1);
  using port_type = fabric::counting<fabric::strict<ucx::port>>;

  /// The launch that this process is a rank of.
  static void launched(ucx::environment& in) {
    constexpr int quick = 4;
    world = &in;
    most_ranks = in.size();
    hosts = ucx::discover(in, in.size()).machine;
    if (most_ranks > quick)
      for (detail::offer& each : detail::offered()) each.what.most_rounds /= 20;
  }

  /// Whether each node of the machine lies on one host.
  [[nodiscard]] static bool has_room_for(const rma::topology& machine) {
    for (rma::rank_t r = 0; r < machine.ranks(); ++r)
      if (!hosts.same_node(r, machine.leader_of(r, machine.node_level()))) return false;
    return true;
  }

  template <class Body>
  static void run(const rma::topology& machine, Body body) {
    if (!has_room_for(machine)) GTEST_SKIP() << "a node of this test's machine spans hosts";
    const ucx::config what{
        .machine = machine, .words_per_rank = 1u << 14, .shared_nodes = mode_now().shared_nodes};
    ucx::run_ports(*world, what, [&](ucx::port& bare) {
      fabric::strict<ucx::port> strict(bare);
      port_type p(strict);
      rma::participant<port_type> me(p, what.words_per_rank);
      body(me);
    });
  }
};

}  // namespace lockflight::test
