// main() of the tests that mpirun starts.
#include "lockflight/fabric/mpi.hpp"
#include "tests/support/launched_main.hpp"

int main(int argc, char** argv) {
  namespace mpi = lockflight::mpi;
  return lockflight::test::launched_main<mpi::environment>(
      argc, argv, [](auto&, int ranks) { return mpi::discover(ranks); },
      [](auto&, const lockflight::fabric::run_config& what, const auto& body) {
        mpi::run_ports({.machine = what.machine,
                        .waiting = what.waiting,
                        .words_per_rank = what.words_per_rank,
                        .shared_nodes = what.shared_nodes},
                       body);
      });
}
