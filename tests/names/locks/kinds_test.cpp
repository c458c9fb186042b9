// Each kind of lock under kills: exclusion, shared holders, and that the living go on.
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <shared_mutex>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

struct state {
  std::atomic<int> writer;
  std::atomic<std::uint64_t> last, wrong, rounds;
};

void work(state& s, const std::string& domain_name, const std::string& kind) {
  auto here = domain::attach(domain_name);
  std::mt19937 random(static_cast<unsigned>(getpid()));
  named_lock l(here, "l", {.kind = kind});
  for (;; ++s.rounds) {
    if (l.can_share() && random() % 2 == 0) {
      const std::shared_lock hold(l);
      if (s.writer != 0 && !l.owner_died()) ++s.wrong;
      continue;
    }
    const std::scoped_lock hold(l);
    if (s.writer.exchange(getpid()) != 0 && !l.owner_died()) ++s.wrong;
    if (s.last.exchange(l.token()) >= l.token()) ++s.wrong;
    if (random() % 4 == 0) sched_yield();
    if (s.writer.exchange(0) != getpid()) ++s.wrong;
    if (l.owner_died()) l.mark_consistent();
  }
}

class DomainKinds : public testing::TestWithParam<std::string> {};

TEST_P(DomainKinds, OutlivesItsHolders) {
  auto& s = *static_cast<state*>(
      mmap(nullptr, sizeof(state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const own_domain own;
  auto d = domain::open(own.name(), {.slots = 9});
  const auto body = [&] { return work(s, own.name(), GetParam()), 0; };
  std::mt19937 random(4711);
  std::vector<child> children;
  for (int i = 0; i < 3; ++i) children.emplace_back(body);
  constexpr int kills = 30;
  using clock = std::chrono::steady_clock;
  const auto kills_end = clock::now() + std::chrono::seconds(30);
  for (int i = 0; i < kills; ++i) {
    // Where processes start slowly, they would be killed before they have used the lock.
    while (s.rounds <= static_cast<unsigned>(i) && clock::now() < kills_end) usleep(1'000);
    usleep(static_cast<useconds_t>(random() % 20'000));
    child& one = children[random() % children.size()];
    one.kill();
    EXPECT_EQ(one.wait(), 1000 + SIGKILL);
    new (&one) child(body);
  }
  // The survivors go on, though those that were killed last may have held.
  const auto before = s.rounds.load();
  const auto patience = clock::now() + std::chrono::seconds(10);
  while (s.rounds < before + 10 && clock::now() < patience) usleep(1'000);
  EXPECT_GE(s.rounds, before + 10) << "the survivors wait for ever";
  const auto rounds = s.rounds.load();
  children.clear();
  EXPECT_EQ(s.wrong, 0u);
  child last([&] {
    alarm(10);
    named_lock l(d, "l", {.kind = GetParam()});
    l.lock();
    l.unlock();
    return 0;
  });
  EXPECT_EQ(last.wait(), 0) << "nobody gets the lock any more";
  EXPECT_GT(rounds, static_cast<unsigned>(kills)) << "they hardly ever got the lock";
  munmap(&s, sizeof s);
}

INSTANTIATE_TEST_SUITE_P(Each, DomainKinds, testing::ValuesIn(kind_names()));

}  // namespace
}  // namespace lockflight::test
