// main() of the tests that mpirun starts. All ranks run the same tests in the same order; rank 0
// prints the results, the others only their failures. A body that throws ends the launch (C36).
#include <gtest/gtest.h>

#include <cstdio>

#include "support/modes.hpp"
#include "support/mpi_fabrics.hpp"

namespace {

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

}  // namespace

int main(int argc, char** argv) {
  namespace test = lockflight::test;
  // Files that are compiled for this binary too hold tests of other fabrics, which start processes.
  GTEST_FLAG_SET(filter, "*/mpi*");
  testing::InitGoogleTest(&argc, argv);
  const lockflight::mpi::environment mpi;
  test::mpi_fabric::launched(mpi.size());
  if (mpi.rank() != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new only_failures(mpi.rank()));
  }
  const bool passed = test::run_all_tests_in_all_modes(mpi.rank() == 0) == 0;
  return mpi.all(passed) ? 0 : 1;
}
