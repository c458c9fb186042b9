// main() of the tests whose ranks meet at a rendezvous. A body that throws ends the launch (C36).
#include <exception>

#include "support/launched_main.hpp"
#include "support/ucx_fabrics.hpp"

int main(int argc, char** argv) {
  namespace test = lockflight::test;
  // Files that are compiled for this binary too hold tests of other fabrics, which start processes.
  GTEST_FLAG_SET(filter, "*/ucx*");
  testing::InitGoogleTest(&argc, argv);
  try {
    lockflight::ucx::environment world;
    test::ucx_fabric::launched(world);
    const bool passed = test::run_launched_tests(world.rank());
    return world.all(passed) ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 3;
  }
}
