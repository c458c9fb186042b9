// Every input of the corpus once, those that found faults among them: each in a process of its own,
// with a limit of time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/names/fuzz/domain_input.hpp"
#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

std::vector<std::filesystem::path> corpus() {
  const std::filesystem::path root = std::getenv("LOCKFLIGHT_SOURCE_DIR");
  std::vector<std::filesystem::path> all;
  for (const auto& one : std::filesystem::directory_iterator(root / "tests/names/fuzz/corpus"))
    all.push_back(one.path());
  std::sort(all.begin(), all.end());
  return all;
}

TEST(FuzzCorpus, EachInputIsAnsweredOrRefused) {
  const auto all = corpus();
  ASSERT_FALSE(all.empty());
  for (const auto& path : all) {
    SCOPED_TRACE(path.filename());
    std::ifstream in(path, std::ios::binary);
    const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
    child one([&] {
      alarm(20);
      prepare_domain_inputs();
      use_domain_input(bytes);
      return 0;
    });
    EXPECT_EQ(one.wait(), 0);
  }
}

}  // namespace
}  // namespace lockflight::test
