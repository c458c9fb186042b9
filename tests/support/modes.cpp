#include "tests/support/modes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace lockflight::test {
namespace {

/// GoogleTest repeats all tests, with their environments, as often as there are modes: each time
/// the next mode is in force.
class next_mode : public testing::Environment {
 public:
  next_mode(std::vector<mode> all, bool says) : all_(std::move(all)), says_(says) {}

  void SetUp() override {
    detail::in_force = all_[next_++ % all_.size()];
    if (says_) std::printf("[ MODE     ] %s\n", mode_now().name);
  }

 private:
  std::vector<mode> all_;
  std::size_t next_ = 0;
  bool says_;
};

[[nodiscard]] bool is_of(std::string_view path, std::string_view file) {
  return std::filesystem::path(path).stem() == file;
}

/// Each once, of those that the file's tests want; of all files if it is empty.
[[nodiscard]] std::vector<mode> modes_of(std::string_view file) {
  std::vector<mode> found;
  for (const detail::offer& each : detail::offered()) {
    const auto is_it = [&](const mode& m) { return std::string_view(m.name) == each.what.name; };
    if ((file.empty() || is_of(each.file, file)) && std::ranges::none_of(found, is_it))
      found.push_back(each.what);
  }
  return found;
}

/// GoogleTest's filter for the tests of a file; empty if there are none.
[[nodiscard]] std::string filter_of(std::string_view file) {
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (is_of(test.file(), file))
        filter.append(suite.name()).append(".").append(test.name()) += ':';
    }
  }
  return filter;
}

[[nodiscard]] int run_all_in(std::vector<mode> all, bool says) {
  if (all.empty()) return RUN_ALL_TESTS();
  if (const char* const only = std::getenv("LOCKFLIGHT_TEST_MODE"); only != nullptr) {
    std::erase_if(all, [only](const mode& each) { return std::string_view(each.name) != only; });
    if (all.empty()) {
      std::fprintf(stderr, "LOCKFLIGHT_TEST_MODE=%s: these tests have no such mode\n", only);
      return 2;
    }
  }
  GTEST_FLAG_SET(recreate_environments_when_repeating, true);
  GTEST_FLAG_SET(repeat, GTEST_FLAG_GET(repeat) * static_cast<int>(all.size()));
  testing::AddGlobalTestEnvironment(new next_mode(std::move(all), says));
  return RUN_ALL_TESTS();
}

}  // namespace

int run_all_tests_in_all_modes(bool says) { return run_all_in(modes_of(""), says); }

int run_tests_of(std::string_view file) {
  const std::string filter = filter_of(file);
  if (filter.empty()) {
    std::fprintf(stderr, "--of=%s: no test is of such a file\n", std::string(file).c_str());
    return 2;
  }
  GTEST_FLAG_SET(filter, filter);
  return run_all_in(modes_of(file), true);
}

}  // namespace lockflight::test
