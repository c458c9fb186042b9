#include "support/modes.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace lockflight::test {
namespace {

/// GoogleTest repeats all tests, with their environments, as often as there are modes: each time
/// the next mode is in force.
class next_mode : public testing::Environment {
 public:
  explicit next_mode(bool says) : says_(says) {}

  void SetUp() override {
    const std::vector<mode>& all = detail::offered();
    detail::in_force = all[next_++ % all.size()];
    if (says_) std::printf("[ MODE     ] %s\n", mode_now().name);
  }

 private:
  std::size_t next_ = 0;
  bool says_;
};

}  // namespace

int run_all_tests_in_all_modes(bool says) {
  std::vector<mode>& all = detail::offered();
  if (all.empty()) return RUN_ALL_TESTS();
  if (const char* const only = std::getenv("LOCKFLIGHT_TEST_MODE"); only != nullptr) {
    std::erase_if(all, [only](const mode& each) { return std::string_view(each.name) != only; });
    if (all.empty()) {
      std::fprintf(stderr, "LOCKFLIGHT_TEST_MODE=%s: these tests have no such mode\n", only);
      return 2;
    }
  }
  testing::AddGlobalTestEnvironment(new next_mode(says));
  GTEST_FLAG_SET(recreate_environments_when_repeating, true);
  GTEST_FLAG_SET(repeat, GTEST_FLAG_GET(repeat) * static_cast<int>(all.size()));
  return RUN_ALL_TESTS();
}

}  // namespace lockflight::test
