// Waits that were given up: by a time limit, and by a jump out of the call.
#include <setjmp.h>
#include <signal.h>

#include <atomic>

#include "tests/names/support.hpp"

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
  ASSERT_TRUE(b.try_lock_for(5s));
  EXPECT_TRUE(b.owner_died());
  EXPECT_EQ(d.deaths(), 1u);
  b.unlock();
}

// Others that give up make a waiter wait anew for its turn, not from then on.
TEST(DomainGivenUp, AWaiterWaitsSinceItsAcquireBegan) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex m(d, "a");
  m.lock();
  child waits([&] {
    named_mutex theirs(domain::attach(own.name()), "a");
    theirs.lock();
    return 0;
  });
  const auto waited = [&] {
    for (const lock_user& each : d.users_of("a"))
      if (each.pid == waits.pid()) return std::chrono::nanoseconds(each.for_ns);
    return std::chrono::nanoseconds(0);
  };
  while (waited() < 100ms) usleep(500);
  for (int i = 0; i < 3; ++i)
    std::thread([&] { EXPECT_FALSE(named_mutex(d, "a").try_lock_for(20ms)); }).join();
  EXPECT_GE(waited(), 160ms);
  m.unlock();
  EXPECT_EQ(waits.wait(), 0);
}

sigjmp_buf out_of_the_wait;

/// Acquires, until a signal ends that by a jump.
void jump_out_of(named_handle& lock) {
  struct sigaction to {};
  to.sa_handler = [](int) { siglongjmp(out_of_the_wait, 1); };
  sigaction(SIGUSR1, &to, nullptr);
  if (sigsetjmp(out_of_the_wait, 1) == 0) lock.acquire();
}

class DomainJumps : public testing::TestWithParam<const char*> {
 protected:
  /// Sends the signal when that process waits.
  void make_jump(const child& process) const {
    const auto waits = [&] {
      for (const domain_lock& lock : d_.locks())
        for (const lock_user& use : lock.users)
          if (use.pid == process.pid() && use.waits()) return true;
      return false;
    };
    while (!waits()) usleep(500);
    kill(process.pid(), SIGUSR1);
  }
  own_domain own_;
  domain d_ = domain::open(own_.name());
};

TEST_P(DomainJumps, OutOfAWaitAreToldAndHurtNobody) {
  auto& step = shared_words<std::atomic<int>>();
  const named_lock_options kind{.kind = GetParam()};
  named_lock m(d_, "a", kind);
  m.lock();
  constexpr int jumps = 5;
  child jumper([&] {
    named_lock mine(domain::attach(own_.name()), "a", kind);
    named_lock another(domain::attach(own_.name()), "b", kind);
    another.lock();
    const auto told = [&] {
      return refusal_of([&] { mine.lock(); }).first ==
             static_cast<int>(domain_error::reason::interrupted);
    };
    static int i = 0;  // a jump changes no static variable
    for (; i < jumps; ++i) {
      step = 2 * i + 1;
      jump_out_of(mine);
      if (i < jumps - 1) CHECK_OR_RETURN(told());
    }
    another.unlock();
    another.lock();  // others are not concerned
    step = 100;
    while (step != 101) usleep(500);
    CHECK_OR_RETURN(told());
    mine.lock();
    mine.unlock();
    another.unlock();
    return 0;
  });
  for (int i = 0; i < jumps; ++i) {
    while (step != 2 * i + 1) usleep(500);
    make_jump(jumper);
  }
  while (step != 100) usleep(500);
  const auto next = [&] {
    return child([&] {
      named_lock theirs(domain::attach(own_.name()), "a", kind);
      theirs.lock();
      const bool had_died = theirs.owner_died();
      theirs.unlock();
      exit(had_died ? 1 : 0);
      return 2;
    });
  };
  // The queue has the one that jumped in it, and two behind it.
  child first = next();
  child second = next();
  m.unlock();
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  step = 101;
  EXPECT_EQ(jumper.wait(), 0);
  EXPECT_TRUE(m.try_lock());
  EXPECT_FALSE(m.owner_died());
  m.unlock();
  EXPECT_EQ(next().wait(), 0);
}

// The waiter at the head of a semaphore's queue holds the queue.
TEST(DomainJumpsOfSemaphores, OutOfAWaitAtTheHeadOfASemaphoreIsUndone) {
  const own_domain own;
  const domain d = domain::open(own.name());
  auto& step = shared_words<std::atomic<int>>();
  named_semaphore ours(d, "s", 1);
  ASSERT_TRUE(ours.try_acquire());
  child jumper([&] {
    named_semaphore mine(domain::attach(own.name()), "s", 1);
    jump_out_of(mine);
    CHECK_OR_RETURN(refusal_of([&] { mine.acquire(); }).first ==
                    static_cast<int>(domain_error::reason::interrupted));
    step = 1;
    while (step != 2) usleep(500);
    mine.acquire();
    mine.release();
    return 0;
  });
  while (std::ranges::none_of(d.users_of("s"), &lock_user::waits)) usleep(500);
  usleep(20'000);  // it is at the head by then, and waits there
  kill(jumper.pid(), SIGUSR1);
  while (step != 1) usleep(500);
  ours.release();
  child next([&] {
    named_semaphore theirs(domain::attach(own.name()), "s", 1);
    CHECK_OR_RETURN(theirs.try_acquire_for(std::chrono::seconds(20)));
    theirs.release();
    return 0;
  });
  EXPECT_EQ(next.wait(), 0);
  step = 2;
  EXPECT_EQ(jumper.wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Each, DomainJumps,
                         testing::Values("flight-rw", "flight", "d-mcs", "mcs-rw-fair", "spin"));

}  // namespace
}  // namespace lockflight::test
