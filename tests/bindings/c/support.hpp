// The common parts of the tests of the C interface.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lockflight/lockflight.h"
#include "tests/support/fabrics.hpp"

namespace lockflight::test {

/// For checks inside ranks: the call must be fine.
inline void fine(int code, const char* call) {
  require(code == LOCKFLIGHT_OK,
          std::string(call) + ": " + lockflight_error_text(code) + ": " + lockflight_last_error());
}

/// For checks inside ranks: the call must be refused with a code, and a text that has these words.
inline void refused(int code, int expected, const std::string& words) {
  const std::string text = lockflight_last_error();
  require(code == expected,
          "code " + std::to_string(code) + " instead of " + std::to_string(expected) + ": " + text);
  require(text.find(words) != std::string::npos, "'" + text + "' does not say '" + words + "'");
  require(text.find('\n') == std::string::npos, "'" + text + "' is more than a line");
}

/// Runs a body that takes the participant alone; the test fails if a rank does.
template <class Body>
void run(const lockflight_config& config, Body body) {
  const int code = lockflight_run(
      &config,
      [](lockflight_participant* me, void* argument) -> int {
        (*static_cast<Body*>(argument))(me);
        return LOCKFLIGHT_OK;
      },
      &body);
  EXPECT_EQ(code, LOCKFLIGHT_OK) << lockflight_last_error();
}

/// One rank in this process, for tests of misuse.
template <class Body>
void alone(Body body) {
  run({.ranks = 1, .threads = 1}, body);
}

}  // namespace lockflight::test
