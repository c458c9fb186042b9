// main() of the tests that mpirun starts. A body that throws ends the launch (C36).
#include "support/launched_main.hpp"
#include "support/mpi_fabrics.hpp"

int main(int argc, char** argv) {
  namespace test = lockflight::test;
  // Files that are compiled for this binary too hold tests of other fabrics, which start processes.
  GTEST_FLAG_SET(filter, "*/mpi*");
  testing::InitGoogleTest(&argc, argv);
  const lockflight::mpi::environment mpi;
  test::mpi_fabric::launched(mpi.size());
  const bool passed = test::run_launched_tests(mpi.rank());
  return mpi.all(passed) ? 0 : 1;
}
