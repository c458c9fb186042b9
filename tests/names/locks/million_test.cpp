// As many locks as a domain can have, and the memory that they take.
#include <sys/stat.h>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

TEST(DomainMillion, TakesMemoryForThoseThatThereAre) {
  const own_domain own;
  auto d = domain::open(own.name(), {.slots = 64, .names = 1'048'576});
  struct stat s {};
  const auto bytes = [&] { return stat(own.path().c_str(), &s) == 0 ? s.st_blocks * 512 : -1; };
  for (int i = 0; i < 1'048'576; ++i) {
    named_lock m(d, "lock number " + std::to_string(i), {.kind = "flight"});
    m.lock();
    EXPECT_GT(m.token(), 0u);
    m.unlock();
    if (i == 1000) {
      EXPECT_LT(bytes(), 8 << 20);
    }
  }
  EXPECT_EQ(d.names(), 1'048'576u);
  EXPECT_LT(bytes(), 1LL << 30);
  std::uint32_t removed = 0;
  for (int i = 0; i < 1'048'576; i += 1000, ++removed)
    EXPECT_TRUE(d.remove_lock("lock number " + std::to_string(i)));
  named_mutex again(d, "one more");
  again.lock();
  EXPECT_GT(again.token(), 1u);
  EXPECT_EQ(d.names(), 1'048'576u - removed + 1);
  again.unlock();
}

}  // namespace
}  // namespace lockflight::test
