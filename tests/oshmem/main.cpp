// main() of the tests that an OpenSHMEM launcher starts. A body that throws ends the launch (C36).
#include <exception>

#include "support/launched_main.hpp"
#include "support/oshmem_fabrics.hpp"

int main(int argc, char** argv) {
  namespace test = lockflight::test;
  // Files that are compiled for this binary too hold tests of other fabrics, which start processes.
  GTEST_FLAG_SET(filter, "*/oshmem*");
  testing::InitGoogleTest(&argc, argv);
  try {
    lockflight::oshmem::environment world;
    test::oshmem_fabric::launched(world);
    const bool passed = test::run_launched_tests(world.rank());
    return world.all(passed) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 3;
  }
}
