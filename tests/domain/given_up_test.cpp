// Waits that were given up: by a time limit, and by a jump out of the call.
#include <setjmp.h>
#include <sys/time.h>

#include <atomic>

#include "support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

// The one that gives up ends at once, and its queue node is in the queue still.
TEST(DomainGivenUp, AWaitThatWasGivenUpIsNoDeathAndNoRepair) {
  const own_domain own;
  auto d = domain::open(own.name());
  named_mutex m(d, "a");
  m.lock();
  const auto await = [&](std::chrono::milliseconds how_long) {
    return child([&, how_long] {
      named_mutex theirs(domain::attach(own.name()), "a");
      const bool had = theirs.try_lock_for(how_long);
      if (had) theirs.unlock();
      exit(had ? 1 : 0);
      return 2;
    });
  };
  child waiter = await(20s);
  await_waiters(d, 1);
  constexpr int times = 3;
  for (int i = 0; i < times; ++i) EXPECT_EQ(await(30ms).wait(), 0);
  for (const domain_slot& each : d.participants()) EXPECT_FALSE(each.dead);
  std::this_thread::sleep_for(200ms);
  m.unlock();
  EXPECT_EQ(waiter.wait(), 1);
  m.lock();
  EXPECT_FALSE(m.owner_died());
  EXPECT_EQ(d.deaths(), 0u);
  EXPECT_EQ(d.locks().at(0).repairs, 0u);
  m.unlock();

  child killed([&] {
    named_mutex theirs(domain::attach(own.name()), "a");
    theirs.lock();
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(killed.wait(), 1000 + SIGKILL);
  m.lock();
  EXPECT_TRUE(m.owner_died());
  EXPECT_EQ(d.deaths(), 1u);
  EXPECT_EQ(d.locks().at(0).repairs, 1u);
  m.mark_consistent();
  m.unlock();
  d.sweep();
  EXPECT_EQ(d.participants().size(), 1u) << "a slot is lost";
}

// A thread that ends while it holds has died, also if a wait of it was given up before.
TEST(DomainGivenUp, AThreadThatEndsWhileItHoldsHasDied) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex m(d, "a");
  m.lock();
  std::thread([&] {
    named_mutex theirs(d, "a");
    EXPECT_FALSE(theirs.try_lock_for(10ms));
    auto* const held = new named_mutex(d, "b");
    held->lock();
  }).join();
  m.unlock();
  named_mutex b(d, "b");
  ASSERT_TRUE(b.try_lock_for(1s));
  EXPECT_TRUE(b.owner_died());
  EXPECT_EQ(d.deaths(), 1u);
  b.unlock();
}

sigjmp_buf out_of_the_wait;

class DomainJumps : public testing::TestWithParam<const char*> {};

TEST_P(DomainJumps, OutOfAWaitAreToldAndHurtNobody) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& step = shared_words<std::atomic<int>>();
  child holder([&] {
    named_lock theirs(domain::attach(own.name()), "a", {.kind = GetParam()});
    theirs.lock();
    step = 1;
    while (step != 2) usleep(500);
    theirs.unlock();
    while (true) pause();
    return 0;
  });
  while (step != 1) usleep(500);
  child jumper([&] {
    named_lock mine(domain::attach(own.name()), "a", {.kind = GetParam()});
    named_lock another(domain::attach(own.name()), "b", {.kind = GetParam()});
    another.lock();
    struct sigaction to {};
    to.sa_handler = [](int) { siglongjmp(out_of_the_wait, 1); };
    sigaction(SIGALRM, &to, nullptr);
    constexpr int times = 5;
    static int i = 0;  // a jump changes no static variable
    for (; i < times; ++i) {
      if (sigsetjmp(out_of_the_wait, 1) == 0) {
        const itimerval soon{{}, {0, 20'000 + 7'000 * i}};
        setitimer(ITIMER_REAL, &soon, nullptr);
        mine.lock();
        return 20;
      }
      const int why = refusal_of([&] { mine.lock(); }).first;
      CHECK_OR_RETURN(why == static_cast<int>(domain_error::reason::interrupted));
    }
    another.unlock();
    if (sigsetjmp(out_of_the_wait, 1) == 0) {
      const itimerval soon{{}, {0, 20'000}};
      setitimer(ITIMER_REAL, &soon, nullptr);
      mine.lock();
      return 21;
    }
    step = 2;  // the queue has the one that jumped in it
    named_lock third(domain::attach(own.name()), "c", {.kind = GetParam()});
    third.lock();
    third.unlock();
    while (step != 3) usleep(500);
    CHECK_OR_RETURN(refusal_of([&] { mine.lock(); }).first ==
                    static_cast<int>(domain_error::reason::interrupted));
    mine.lock();
    mine.unlock();
    another.lock();
    another.unlock();
    step = 4;
    while (true) pause();
    return 0;
  });
  while (step != 2) {
    int status = 0;
    ASSERT_EQ(waitpid(jumper.pid(), &status, WNOHANG), 0) << WEXITSTATUS(status);
    usleep(500);
  }
  named_lock m(d, "a", {.kind = GetParam()});
  const auto before = std::chrono::steady_clock::now();
  m.lock();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
  EXPECT_FALSE(m.owner_died());
  m.unlock();
  step = 3;
  while (step != 4) {
    int status = 0;
    ASSERT_EQ(waitpid(jumper.pid(), &status, WNOHANG), 0) << WEXITSTATUS(status);
    usleep(500);
  }
  constexpr int times = 100;
  for (int i = 0; i < times; ++i) {
    m.lock();
    EXPECT_FALSE(m.owner_died());
    m.unlock();
  }
  EXPECT_EQ(d.deaths(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Each, DomainJumps,
                         testing::Values("flight-rw", "flight", "d-mcs", "mcs-rw-fair", "spin"));

}  // namespace
}  // namespace lockflight::test
