// main() of the tests, but of those that mpirun starts. `--of=NAME` runs the tests of the file
// NAME.cpp alone, without it all of the binary.
#include <gtest/gtest.h>

#include <string_view>

#include "tests/support/modes.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view of = "--of=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(of))
    return lockflight::test::run_tests_of(std::string_view(argv[1]).substr(of.size()));
  return lockflight::test::run_all_tests_in_all_modes();
}
