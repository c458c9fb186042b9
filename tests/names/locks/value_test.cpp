// The values that holders publish under a name (named_handle::publish), on one machine.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

TEST(DomainValue, AHolderPublishesAndAllRead) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  named_mutex other(d, "a");
  EXPECT_EQ(other.published(), published_value{}) << "a lock that nobody has made";
  a.lock();
  a.withdraw();
  EXPECT_EQ(other.published(), published_value{});
  a.publish("10.0.0.5:8080");
  EXPECT_EQ(other.published(), (published_value{"10.0.0.5:8080", a.token(), lasts::with_hold}));
  a.publish("");
  EXPECT_EQ(other.published(), (published_value{"", a.token(), lasts::with_hold}))
      << "empty is a value";
  const std::string odd("a\0b\n\t", 5);
  a.publish(odd);
  EXPECT_EQ(other.published().bytes, odd);
  a.withdraw();
  EXPECT_EQ(other.published(), published_value{});
  a.unlock();
}

TEST(DomainValue, AllSizes) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  for (const std::size_t size :
       {std::size_t{7}, std::size_t{8}, std::size_t{9}, std::size_t{1'008}, std::size_t{1'009},
        std::size_t{16'369}, most_value_bytes, std::size_t{3}}) {
    std::string made(size, 'x');
    made.back() = 'y';
    a.publish(made);
    EXPECT_EQ(a.published().bytes, made) << size;
  }
  const std::string large(most_value_bytes + 1, 'x');
  EXPECT_REFUSED(invalid, "a value of 65001 bytes (accepted: at most 65000)", a.publish(large));
  EXPECT_EQ(a.published().bytes, "xxy");
  a.unlock();
}

TEST(DomainValue, OnlyAnExclusiveHolderOfOneLockPublishes) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_shared_mutex a(d, "a");
  EXPECT_REFUSED(not_held, "'a'", a.publish("x"));
  a.lock_shared();
  EXPECT_REFUSED(not_held, "'a'", a.publish("x"));
  EXPECT_REFUSED(not_held, "'a'", a.withdraw());
  a.unlock_shared();
  named_semaphore units(d, "s", 2);
  units.acquire();
  EXPECT_REFUSED(invalid, "of one lock", units.publish("x"));
  units.release();
  named_locks both(d, {"a", "b"});
  EXPECT_REFUSED(invalid, "of one lock", static_cast<void>(both.published()));
  EXPECT_EQ(a.published(), published_value{});
}

TEST(DomainValue, ItLastsWithItsHoldOrItsName) {
  const own_domain own;
  const auto d = domain::open(own.name());
  for (const lasts until : {lasts::with_hold, lasts::with_name}) {
    const bool stays = until == lasts::with_name;
    named_mutex a(d, "a");
    named_mutex reader(d, "a");
    a.lock();
    a.publish("of a release", until);
    EXPECT_EQ(reader.published().bytes, "of a release");
    a.unlock();
    EXPECT_EQ(reader.published().bytes, stays ? "of a release" : "");
    child dies([&] {
      named_mutex its(d, "a");
      its.lock();
      its.publish("of a death", until);
      raise(SIGKILL);
      return 0;
    });
    EXPECT_EQ(dies.wait(), 1000 + SIGKILL);
    EXPECT_EQ(reader.published().bytes, stays ? "of a death" : "");
    a.lock();
    EXPECT_EQ(reader.published().bytes, stays ? "of a death" : "") << "of the hold before";
    a.unlock();
  }
}

TEST(DomainValue, AWaiterIsToldAtOnce) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  std::atomic<int> seen{0};
  std::thread waiter([&] {
    named_mutex reader(d, "a");
    published_value last;
    for (const char* const next : {"one", "two", ""}) {
      const auto before = clock::now();
      last = reader.await_published(last, 20s);
      EXPECT_EQ(last.bytes, next);
      EXPECT_LT(clock::now() - before, 15s) << next;
      ++seen;
    }
    EXPECT_EQ(last.token, 0U);
  });
  const auto await_seen = [&](int count) {
    while (seen < count) std::this_thread::sleep_for(1ms);
  };
  a.publish("one");
  await_seen(1);
  a.publish(std::string("two"));
  await_seen(2);
  a.withdraw();
  waiter.join();
  a.unlock();
}

TEST(DomainValue, AWaiterIsToldOfADeath) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& is_published = shared_words<std::atomic<int>>();
  child holder([&] {
    named_mutex a(d, "a");
    a.lock();
    a.publish("here");
    is_published = 1;
    pause();
    return 0;
  });
  while (is_published == 0) std::this_thread::sleep_for(1ms);
  named_mutex reader(d, "a");
  const published_value here = reader.await_published({}, 20s);
  EXPECT_EQ(here.bytes, "here");
  std::thread kills([&] {
    std::this_thread::sleep_for(50ms);
    holder.kill();
    holder.wait();
  });
  EXPECT_EQ(reader.await_published(here, 20s), published_value{});
  kills.join();
}

TEST(DomainValue, AWaitHasALimitAndCanBeInterrupted) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  a.publish("x");
  named_mutex reader(d, "a");
  const published_value x = reader.published();
  EXPECT_EQ(reader.await_published(x, limit::at_once()), x);
  const auto begun = clock::now();
  EXPECT_EQ(reader.await_published(x, 50ms), x);
  EXPECT_GE(clock::now() - begun, 50ms);
  named_control(reader).interrupt_with([] { return true; });
  EXPECT_REFUSED(interrupted, "'a'", static_cast<void>(reader.await_published(x)));
  EXPECT_EQ(reader.published(), x);
  a.unlock();
}

// A reader never sees a part of one value and a part of another.
TEST(DomainValue, ReadersSeeWholeValues) {
  const own_domain own;
  const auto d = domain::open(own.name());
  std::atomic<bool> ends{false};
  std::atomic<int> read{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      named_mutex reader(d, "a");
      while (!ends) {
        const published_value now = reader.published();
        if (now.token == 0) continue;
        ASSERT_EQ(now.bytes, std::string(now.bytes.size(), now.bytes.front()));
        ASSERT_EQ(now.bytes.size(), static_cast<std::size_t>(now.bytes.front()) * 30);
        ++read;
      }
    });
  named_mutex a(d, "a");
  a.lock();
  for (int i = 0; i < 20'000 || read < 100; ++i) {
    const auto each = static_cast<char>(1 + i % 100);  // of 30 to 3,000 bytes, in two blocks
    a.publish(std::string(static_cast<std::size_t>(each) * 30, each));
  }
  ends = true;
  for (std::thread& each : readers) each.join();
  a.unlock();
}

TEST(DomainValue, ItGoesWithItsNameAndIsNoLock) {
  const own_domain own;
  auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  a.publish("of the name before", lasts::with_name);
  ASSERT_EQ(d.locks().size(), 1U);
  EXPECT_EQ(d.locks().front().name, "a");
  a.unlock();
  EXPECT_TRUE(d.remove_lock("a"));
  EXPECT_TRUE(d.locks().empty());
  named_mutex again(d, "a");
  EXPECT_EQ(again.published(), published_value{});
  named_mutex b(d, "b");
  b.lock();
  b.publish("b");  // in the block that the value of a had
  EXPECT_EQ(named_mutex(d, "b").published().bytes, "b");
  b.unlock();
}

// An observer is told at once also of a value that needs a larger block.
TEST(DomainValue, AWaiterFollowsAValueThatGrows) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  a.publish("small");
  std::atomic<bool> waits{false};
  std::thread waiter([&] {
    named_mutex reader(d, "a");
    const published_value small = reader.published();
    waits = true;
    EXPECT_EQ(reader.await_published(small, 20s).bytes.size(), 30'000U);
  });
  while (!waits) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  a.publish(std::string(30'000, 'x'));
  waiter.join();
  a.unlock();
}

// Names with values make room for others as names without do.
TEST(DomainValue, NamesWithValuesAreForgottenWhenRoomIsNeeded) {
  const own_domain own;
  const auto d = domain::open(own.name(), {.names = 6});
  for (int i = 0; i < 40; ++i) {
    named_mutex each(d, "name" + std::to_string(i));
    each.lock();
    each.publish("value", lasts::with_name);
    each.unlock();
  }
}

// A domain that is full makes room for names, but not by the values of those that it keeps.
TEST(DomainValue, AValueStaysWithItsNameWhenRoomIsMade) {
  const own_domain own;
  const auto d = domain::open(own.name(), {.names = 6});
  named_mutex a(d, "a");
  a.lock();
  a.publish("kept", lasts::with_name);
  for (int i = 0; i < 20; ++i) {
    named_mutex other(d, "other" + std::to_string(i));
    other.lock();
    other.unlock();
  }
  EXPECT_EQ(a.published().bytes, "kept");
  a.unlock();
}

}  // namespace
}  // namespace lockflight::test
