// The main() of tests whose ranks are started from outside. All ranks run the same tests in the
// same order; rank 0 prints the results, the others only their failures.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "support/modes.hpp"

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

/// Whether all passed on this rank.
[[nodiscard]] inline bool run_launched_tests(int rank) {
  if (rank != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new only_failures(rank));
  }
  return run_all_tests_in_all_modes(rank == 0) == 0;
}

}  // namespace lockflight::test
