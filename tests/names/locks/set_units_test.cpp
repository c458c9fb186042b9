// Which units a semaphore has: chosen numbers, and changes while it is used.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

class DomainSetUnits : public testing::Test {
 protected:
  named_semaphore handle(const units& what) const { return {in_, "s", what}; }
  /// Waits in a thread of its own until it has units, and returns these.
  [[nodiscard]] std::jthread waiter(const units& what, std::vector<int>& got) const {
    return std::jthread([this, what, &got] {
      named_semaphore s = handle(what);
      s.acquire();
      got = s.units_held();
      s.release();
    });
  }

  own_domain own_;
  domain in_ = domain::open(own_.name());
};

TEST_F(DomainSetUnits, ChosenNumbersAreThoseOfTheUnits) {
  named_semaphore a = handle({.numbers = {3, 0, 61}});
  named_semaphore b = handle({.take = 2, .numbers = {61, 3, 0}});
  EXPECT_EQ(a.units_of(), 3);
  a.acquire();
  b.acquire();
  EXPECT_EQ(a.unit(), 0);
  EXPECT_EQ(b.units_held(), (std::vector{3, 61}));
  EXPECT_EQ(in_.units_of("s").numbers, (std::vector{0, 3, 61}));
  EXPECT_FALSE(in_.units_of("s").are_set);
  EXPECT_EQ(in_.locks().at(0).unit_numbers, (std::vector{0, 3, 61}));
  EXPECT_REFUSED(disagrees, "is a semaphore of the units 0, 3 and 61 (made by",
                 handle({.count = 3}));
  EXPECT_REFUSED(disagrees, "not a semaphore of the units 0 and 3", handle({.numbers = {0, 3}}));
  // The first numbers are those of a number of units.
  named_semaphore c(in_, "t", units{.numbers = {1, 0}});
  c.acquire();
  EXPECT_TRUE(named_semaphore(in_, "t", 2).try_acquire());
}

TEST_F(DomainSetUnits, WhatIsNoNumberOfAUnitIsRefused) {
  EXPECT_REFUSED(invalid, "unit 62 (accepted: 0 to 61)", handle({.numbers = {0, 62}}));
  EXPECT_REFUSED(invalid, "unit -1 (accepted: 0 to 61)", handle({.numbers = {-1}}));
  EXPECT_REFUSED(invalid, "unit 4 twice (accepted: each number once)", handle({.numbers = {4, 4}}));
  EXPECT_REFUSED(invalid, "take 3 of the units 0 and 3 (accepted: 1 to 2)",
                 handle({.take = 3, .numbers = {0, 3}}));
  EXPECT_REFUSED(invalid, "0 units (accepted: 1 to 1024)", in_.set_units("s", {.count = 0}));
  EXPECT_REFUSED(invalid, "1 to 255", in_.set_units("", {.count = 1}));
  named_mutex lock(in_, "m");
  lock.lock();
  EXPECT_REFUSED(disagrees, "'m' is a flight-rw (accepted: a semaphore", in_.set_units("m", {}));
  EXPECT_REFUSED(disagrees, "'m' is a flight-rw", static_cast<void>(in_.units_of("m")));
}

TEST_F(DomainSetUnits, AWaiterSeesANewUnitAtOnce) {
  named_semaphore holds = handle({.count = 1});
  holds.acquire();
  std::vector<int> got;
  std::jthread waits = waiter({.count = 1}, got);
  await_waiters(in_, 1);
  const auto before = std::chrono::steady_clock::now();
  in_.set_units("s", {.count = 2});
  waits.join();
  EXPECT_EQ(got, std::vector{1});
  EXPECT_LT(std::chrono::steady_clock::now() - before, 500ms)
      << "it does not wait for its next try";
  EXPECT_EQ(holds.units_of(), 2);
}

TEST_F(DomainSetUnits, AUnitThatIsLeftOutIsGivenToNobodyAndItsHolderGoesOn) {
  named_semaphore low = handle({.count = 3});
  named_semaphore high = handle({.count = 3, .take = 2});
  low.acquire();
  high.acquire();
  in_.set_units("s", {.numbers = {0, 2}});
  EXPECT_TRUE(high.is_held());
  EXPECT_EQ(high.units_held(), (std::vector{1, 2}));
  EXPECT_EQ(in_.users_of("s").size(), 1u) << "one thread";
  high.release();
  EXPECT_REFUSED(held, "hold 1 of its 2 units, and this one takes 2",
                 static_cast<void>(high.try_acquire()));
  named_semaphore one = handle({.count = 3});
  EXPECT_TRUE(one.try_acquire());
  EXPECT_EQ(one.unit(), 2);
  low.release();
  one.release();
  EXPECT_TRUE(high.try_acquire());
  EXPECT_EQ(high.units_held(), (std::vector{0, 2}));
}

TEST_F(DomainSetUnits, TheUnitsThatHandlesAreMadeWithDoNotCountAnyMore) {
  named_semaphore before = handle({.count = 3});
  before.acquire();
  before.release();
  in_.set_units("s", {.count = 5});
  named_semaphore other = handle({.count = 7});
  other.acquire();
  EXPECT_EQ(other.units_of(), 5);
  before.acquire();
  EXPECT_TRUE(in_.units_of("s").are_set);
  EXPECT_EQ(in_.units_of("s").numbers.size(), 5u);
  in_.set_units("s", {.count = 1});
  named_semaphore several = handle({.count = 7, .take = 2});
  EXPECT_REFUSED(invalid, "take 2 of 1 unit, to which it was set (accepted: 1 to 1",
                 static_cast<void>(several.try_acquire()));
  EXPECT_FALSE(several.is_held());
}

TEST_F(DomainSetUnits, AWaiterThatWantsMoreThanAreLeftIsToldAndDelaysNobody) {
  named_semaphore holds = handle({.count = 3});
  holds.acquire();
  std::thread large([&] {
    named_semaphore s = handle({.count = 3, .take = 3});
    EXPECT_REFUSED(invalid, "take 3 of 2 units, to which it was set", s.acquire());
  });
  await_waiters(in_, 1);
  std::vector<int> got;
  std::jthread small = waiter({.count = 3}, got);
  await_waiters(in_, 2);
  in_.set_units("s", {.count = 2});
  large.join();
  small.join();
  EXPECT_EQ(got, std::vector{1});
}

TEST_F(DomainSetUnits, AWaiterGivesBackWhatItHasCollectedAndIsLeftOut) {
  named_semaphore holds = handle({.count = 3});
  holds.acquire();
  std::vector<int> got;
  std::jthread large = waiter({.count = 3, .take = 3}, got);
  while (std::ranges::none_of(in_.users_of("s"), [](const lock_user& each) {
    return each.waits() && each.units_held == std::vector{1, 2};
  }))
    std::this_thread::sleep_for(1ms);
  in_.set_units("s", {.numbers = {0, 1, 5, 7}});
  large.join();
  EXPECT_EQ(got, (std::vector{1, 5, 7}));
  // Nobody has unit 2.
  in_.set_units("s", {.numbers = {2, 3}});
  named_semaphore both = handle({.count = 2, .take = 2});
  EXPECT_TRUE(both.try_acquire());
}

TEST_F(DomainSetUnits, ANameThatIsNotInUseCanBeSet) {
  EXPECT_TRUE(in_.units_of("s").numbers.empty());
  in_.set_units("s", {.numbers = {4, 6}});
  named_semaphore any = handle({.count = 8});
  any.acquire();
  EXPECT_EQ(any.unit(), 4);
  any.release();
  EXPECT_TRUE(in_.remove_lock("s"));
  named_semaphore(in_, "t", 3).acquire();  // perhaps in the same words
  EXPECT_EQ(any.units_of(), 8) << "as it was made";
  any.acquire();
  EXPECT_EQ(any.unit(), 0) << "it was forgotten";
  EXPECT_EQ(any.units_of(), 8);
}

TEST_F(DomainSetUnits, AUnitThatWasLeftOutIsForgottenWithTheName) {
  named_semaphore eight = handle({.count = 8});
  std::vector<std::unique_ptr<named_semaphore>> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(std::make_unique<named_semaphore>(in_, "s", 8));
    all.back()->acquire();
  }
  in_.set_units("s", {.count = 2});
  EXPECT_EQ(in_.users_of("s").at(0).units_held.size(), 8u) << "they are held still";
  for (const auto& each : all) each->release();
  EXPECT_TRUE(in_.remove_lock("s"));
  EXPECT_EQ(in_.names(), 0u);
}

TEST_F(DomainSetUnits, ItIsNotDroppedForWantOfRoom) {
  own_domain small("s");
  auto in = domain::open(small.name(), {.names = 8});
  in.set_units("s", {.count = 2});
  for (int i = 0; i < 40; ++i) {
    named_mutex m(in, "m" + std::to_string(i));
    m.lock();
    m.unlock();
  }
  EXPECT_TRUE(in.units_of("s").are_set);
}

// Takers of one to three units go on while the units change all the time. No unit has two holders.
TEST_F(DomainSetUnits, ChangesAtAnyMoment) {
  constexpr int most = 8;
  struct counts {
    std::atomic<int> of_unit[most];
    std::atomic<bool> shared_a_unit, ends;
    std::atomic<int> acquires;
  };
  auto& seen = shared_words<counts>();
  std::vector<child> all;
  for (const int take : {1, 1, 2, 3})
    all.emplace_back([&, take] {
      named_semaphore s(domain::open(own_.name()), "s", {.count = most, .take = take});
      while (!seen.ends) {
        try {
          if (!s.try_acquire_for(20ms)) continue;
        } catch (const domain_error& e) {
          CHECK_OR_RETURN(e.why == domain_error::reason::invalid);
          continue;
        }
        for (const int unit : s.units_held())
          if (++seen.of_unit[unit] != 1) seen.shared_a_unit = true;
        ++seen.acquires;
        for (const int unit : s.units_held()) --seen.of_unit[unit];
        s.release();
      }
      return 0;
    });
  for (int round = 0; round < 60 || seen.acquires < 1000; ++round) {
    in_.set_units("s", round % 3 == 0 ? units{.count = 1 + round % most}
                                      : units{.numbers = {round % 4, 4, 5 + round % 3}});
    std::this_thread::sleep_for(500us);
  }
  in_.set_units("s", {.count = most});
  seen.ends = true;
  for (child& each : all) EXPECT_EQ(each.wait(), 0);
  EXPECT_FALSE(seen.shared_a_unit);
  named_semaphore every = handle({.count = most, .take = most});
  EXPECT_TRUE(every.try_acquire());
}

}  // namespace
}  // namespace lockflight::test
