// The document that the report's tests start from.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "lab/report/report.hpp"

namespace lockflight::report {

inline std::string sample_path() {
  const char* source_dir = std::getenv("LOCKFLIGHT_SOURCE_DIR");
  return std::string(source_dir == nullptr ? "." : source_dir) + "/tests/lab/report/sample.json";
}

inline nlohmann::json sample() { return parse_file(sample_path()); }

/// The sample cut to its first two runs, for tests that need many documents.
inline const nlohmann::json& small_sample() {
  static const nlohmann::json small = [] {
    nlohmann::json bench = sample();
    bench["runs"].erase(bench["runs"].begin() + 2, bench["runs"].end());
    return bench;
  }();
  return small;
}

/// The message of the bad_input that `call` throws; it must be one line.
template <class Call>
std::string complaint(Call&& call) {
  try {
    call();
  } catch (const bad_input& e) {
    const std::string what = e.what();
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    return what;
  }
  ADD_FAILURE() << "no bad_input was thrown";
  return {};
}

}  // namespace lockflight::report
