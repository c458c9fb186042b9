// The fabrics of a test binary that mpirun starts: all ranks run the same tests in lock step, and
// each run of a test uses the first of them.
#pragma once

#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/mpi.hpp"
#include "lockflight/fabric/strict.hpp"

namespace lockflight::test {

/// Nodes of a machine are held to what MPI offers between nodes; or, with `Shared`, all of this
/// machine's ranks use CPU instructions on each other's cells, whatever the node.
template <bool Shared>
struct mpi_fabric {
  static constexpr const char* name = Shared ? "mpi_shared" : "mpi_nodes";
  static constexpr bool shares_memory = false;     // what is mapped before a run is each rank's own
  static constexpr bool survives_failure = false;  // the launch ends with the rank
  static inline int most_ranks = 1;                // of this launch
  // Between nodes an operation takes microseconds, and with more ranks than cores turns of the
  // kernel, which somebody else's computation may have in between.
  static inline int most_rounds = Shared ? 300 : 60;

  /// What a launch of so many ranks is good for.
  static void launched(int ranks) {
    constexpr int quick = 4;
    most_ranks = ranks;
    if (ranks > quick) most_rounds /= 10;
  }
  using port_type = fabric::counting<fabric::strict<mpi::port>>;

  template <class Body>
  static void run(const rma::topology& machine, Body body) {
    // Small segments: the memory of a few dozen machines is kept from one run to the next.
    const mpi::config what{.machine = machine, .words_per_rank = 1u << 14, .shared_nodes = Shared};
    mpi::run_ports(what, [&](mpi::port& bare) {
      fabric::strict<mpi::port> strict(bare);
      port_type p(strict);
      rma::participant<port_type> me(p, what.words_per_rank);
      body(me);
    });
  }
};
using mpi_nodes = mpi_fabric<false>;
using mpi_shared = mpi_fabric<true>;

}  // namespace lockflight::test
