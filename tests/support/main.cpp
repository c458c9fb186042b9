// main() of the tests, but of those that mpirun starts.
#include <gtest/gtest.h>

#include "support/modes.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return lockflight::test::run_all_tests_in_all_modes();
}
