// The main() of tests whose ranks are started from outside. All ranks run the same tests in the
// same order; rank 0 prints the results, the others only their failures.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <exception>

#include "tests/support/launched_fabric.hpp"

namespace lockflight::test {

/// Prints only the failures of a rank.
class only_failures : public testing::EmptyTestEventListener {
 public:
  explicit only_failures(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_,
                 result.file_name() != nullptr ? result.file_name() : "?", result.line_number(),
                 result.message());
  }

 private:
  int rank_;
};

/// True if all passed on this rank.
[[nodiscard]] inline bool run_launched_tests(int rank) {
  if (rank != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new only_failures(rank));
  }
  return run_all_tests_in_all_modes(rank == 0) == 0;
}

/// main() of a binary whose fabric has the environment `Environment`, discover and run_ports. A
/// body that throws ends the launch (C36).
template <class Environment, class Discover, class Run>
[[nodiscard]] int launched_main(int argc, char** argv, Discover discover, Run run_ports) {
  // Files that are compiled for this binary too hold tests of other fabrics, which start processes.
  GTEST_FLAG_SET(filter, "*/launched*");
  testing::InitGoogleTest(&argc, argv);
  try {
    Environment world;
    launched_fabric::launched(
        discover(world, world.size()).machine,
        [&](const fabric::run_config& what, const auto& body) { run_ports(world, what, body); });
    const bool passed = world.all(run_launched_tests(world.rank()));
    if (passed && world.rank() == 0) {
      // Unlike what GoogleTest prints, this is of all ranks, and of no run with a failure.
      std::puts("all ranks passed");
      std::fflush(stdout);  // MPI_Finalize may hang (docs/mpi-details.md)
    }
    return passed ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 3;
  }
}

}  // namespace lockflight::test
