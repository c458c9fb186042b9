// Holds that outlast the thread or the process that acquired.
#include <fcntl.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

TEST(DomainHold, AHoldLastsAsLongAsTheProcessThatItWasExtendedTo) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& step = shared_words<std::atomic<int>>();
  child run([&] {
    named_mutex m(d, "a");
    m.lock();
    const pid_t command = fork();
    if (command == 0) {
      named_control(m).extend_to_this_process();
      step = 1;
      while (step == 1) usleep(1000);
      _exit(0);
    }
    while (step == 0) usleep(1000);
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(run.wait(), 1000 + SIGKILL);
  named_mutex m(d, "a");
  EXPECT_FALSE(m.try_lock());
  EXPECT_FALSE(m.try_lock_for(300ms)) << "its command still runs";
  step = 2;
  ASSERT_TRUE(m.try_lock_for(3s));
  EXPECT_TRUE(m.owner_died());
  m.unlock();
}

// The first one holds nothing for anybody yet, and the second one has begun.
TEST(DomainHold, ADeathIsToldFromTheMomentOfTheExtensionOn) {
  for (const bool begins : {false, true})
    for (const int names : {1, 2, 0}) {
      const own_domain own;
      const auto d = domain::open(own.name());
      const auto made = [&] {
        if (names == 0) return named_handle(d, "a", units{1});
        if (names == 2) return named_handle(d, std::vector<std::string>{"b", "a"});
        return named_handle(d, "a");
      };
      child run([&] {
        named_handle m = made();
        named_control(m).guard_nothing_yet();
        CHECK_OR_RETURN(m.acquire(mode::exclusive, 3s));
        if (begins) named_control(m).extend_to(0);
        raise(SIGKILL);
        return 0;
      });
      EXPECT_EQ(run.wait(), 1000 + SIGKILL);
      named_handle m = made();
      ASSERT_TRUE(m.acquire(mode::exclusive, 3s));
      EXPECT_EQ(m.owner_died(), begins) << names;
    }
}

TEST(DomainHold, NothingIsLeftOfAHandleThatGuardedNothing) {
  const own_domain own;
  const auto d = domain::open(own.name());
  child run([&] {
    named_mutex m(d, "a");
    {
      named_handle first(d, "b");
      named_control(first).guard_nothing_yet();
      first.acquire();
      first.release();
    }
    m.lock();
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(run.wait(), 1000 + SIGKILL);
  named_mutex m(d, "a");
  ASSERT_TRUE(m.try_lock_for(3s));
  EXPECT_TRUE(m.owner_died());
  m.unlock();
}

TEST(DomainHold, AHandleThatAnotherThreadDropsFreesTheLock) {
  const own_domain own;
  const auto d = domain::open(own.name());
  std::unique_ptr<named_mutex> kept;
  std::atomic<int> step{0};
  std::thread holder([&] {
    kept = std::make_unique<named_mutex>(d, "a");
    kept->lock();
    step = 1;
    while (step == 1) std::this_thread::yield();
    named_mutex again(d, "a");
    again.lock();
    again.unlock();
  });
  while (step == 0) std::this_thread::yield();
  kept.reset();
  named_mutex m(d, "a");
  ASSERT_TRUE(m.try_lock_for(2s));
  EXPECT_TRUE(m.owner_died());
  m.unlock();
  step = 2;
  holder.join();
}

}  // namespace
}  // namespace lockflight::test
