// Handles that take several units of a semaphore: all of them or none, in order of arrival, also if
// waiters that have collected some are killed or stopped. The names of the tests that are about an
// invariant have its label (lockflight/lock/robust/semaphore.hpp, units_handle.cpp).
#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// A process that takes units of "s", and gives them back when it is to.
class taker {
 public:
  taker(const std::string& in, units what, const std::string& also = "")
      : state_(shared_words<state>()), child_([in, what, also, this] {
          const domain d = domain::open(in);
          named_mutex other(d, also.empty() ? "other" : also);
          if (!also.empty()) other.lock();
          named_semaphore s(d, "s", what);
          s.acquire();
          state_.owner_died = s.owner_died();
          const auto held = s.units_held();
          for (std::size_t i = 0; i < held.size(); ++i) state_.units[i] = held[i];
          state_.count = static_cast<int>(held.size());
          while (!state_.is_to_release) usleep(500);
          s.release();
          return 0;
        }) {}

  [[nodiscard]] bool has_units() const { return state_.count != 0; }
  [[nodiscard]] std::vector<int> await_units() const {
    while (!has_units()) usleep(500);
    return {state_.units, state_.units + state_.count};
  }
  [[nodiscard]] bool saw_a_death() const { return state_.owner_died; }
  [[nodiscard]] int pid() const { return child_.pid(); }
  void signal(int number) const { ::kill(child_.pid(), number); }
  void kill() {
    child_.kill();
    EXPECT_EQ(child_.wait(), 1000 + SIGKILL);
  }
  void end() {
    state_.is_to_release = true;
    EXPECT_EQ(child_.wait(), 0);
  }

 private:
  struct state {
    std::atomic<bool> owner_died, is_to_release;
    std::atomic<int> count;
    int units[32];
  };
  state& state_;
  child child_;
};

class DomainSeveralUnits : public testing::Test {
 protected:
  [[nodiscard]] taker take(int count, int of, const std::string& also = "") const {
    return {own_.name(), {.count = of, .take = count}, also};
  }
  [[nodiscard]] named_semaphore handle(int count, int of) const {
    return {in_, "s", units{.count = of, .take = count}};
  }
  /// A participant of the semaphore, as the domain shows it.
  [[nodiscard]] lock_user shown(const taker& who) const {
    for (const lock_user& each : in_.users_of("s"))
      if (each.pid == who.pid()) return each;
    return {};
  }
  /// Returns when it waits, and has collected these.
  void await_collected(const taker& who, const std::vector<int>& units) const {
    while (true) {
      const lock_user now = shown(who);
      if (now.pid != 0 && now.waits() && now.units_held == units) return;
      ASSERT_FALSE(who.has_units());
      std::this_thread::sleep_for(1ms);
    }
  }
  void expect_all_free(int of) const {
    named_semaphore all = handle(of, of);
    ASSERT_TRUE(all.try_acquire_for(5s));
    EXPECT_FALSE(all.owner_died());
    all.release();
  }

  own_domain own_;
  domain in_ = domain::open(own_.name());
};

TEST_F(DomainSeveralUnits, AHoldHasSeveralUnitsAndATokenOfEach) {
  named_semaphore one = handle(1, 5);
  named_semaphore two = handle(2, 5);
  named_semaphore both = handle(2, 5);
  EXPECT_TRUE(two.units_held().empty());
  EXPECT_EQ(two.tokens(), std::vector<std::uint64_t>{0});
  two.acquire();
  one.acquire();
  both.acquire();
  EXPECT_EQ(two.units_held(), (std::vector{0, 1}));
  EXPECT_EQ(one.units_held(), std::vector{2});
  EXPECT_EQ(both.units_held(), (std::vector{3, 4}));
  EXPECT_EQ(both.unit(), 3);
  EXPECT_EQ(both.state().units_held, (std::vector{3, 4}));
  const auto tokens = two.tokens();
  EXPECT_EQ(tokens.size(), 2u);
  two.release();
  EXPECT_TRUE(two.units_held().empty());
  EXPECT_EQ(two.unit(), -1);
  EXPECT_EQ(two.tokens(), tokens);
  EXPECT_TRUE(two.try_acquire());
  EXPECT_GT(two.tokens()[0], tokens[0]);
  EXPECT_GT(two.tokens()[1], tokens[1]);
  EXPECT_FALSE(two.loss().stop_requested());
  EXPECT_EQ(two.valid_for(), std::chrono::nanoseconds::max());
}

TEST_F(DomainSeveralUnits, WhatCannotBeIsRefusedByName) {
  EXPECT_REFUSED(invalid, "take 4 of 3 units (accepted: 1 to 3)", static_cast<void>(handle(4, 3)));
  EXPECT_REFUSED(invalid, "take 2 of 1 unit (accepted: 1 to 1)", static_cast<void>(handle(2, 1)));
  EXPECT_REFUSED(invalid, "take 0 of 3 units", static_cast<void>(handle(0, 3)));
  EXPECT_REFUSED(invalid, "take 32 of 40 units (accepted: 1 to 31, since a thread holds 32 locks",
                 static_cast<void>(handle(32, 40)));
  named_semaphore a = handle(31, 40);
  EXPECT_TRUE(a.try_acquire());
  EXPECT_EQ(a.units_held().size(), 31u);
  a.release();
  named_semaphore b = handle(20, 40);
  named_semaphore c = handle(20, 40);
  b.acquire();
  EXPECT_REFUSED(full, "holds 32 locks", static_cast<void>(c.try_acquire()));
  b.release();
  EXPECT_TRUE(c.try_acquire()) << "the acquire that was refused has kept nothing";
}

TEST_F(DomainSeveralUnits, AThreadIsToldBeforeItWaitsForItself) {
  named_semaphore a = handle(2, 3);
  named_semaphore b = handle(2, 3);
  a.acquire();
  EXPECT_REFUSED(held, "hold 2 of its 3 units, and this one takes 2", b.acquire());
  a.release();
  b.acquire();
}

TEST_F(DomainSeveralUnits, S8SmallRequestsDoNotOvertakeALargeOne) {
  std::vector<taker> holders;
  holders.reserve(3);
  for (int i = 0; i < 3; ++i) {
    holders.push_back(take(1, 3));
    EXPECT_EQ(holders.back().await_units(), std::vector{i});
  }
  taker large = take(3, 3);
  await_collected(large, {});
  taker small = take(1, 3);
  await_collected(small, {});
  named_semaphore attempt = handle(1, 3);
  for (const int released : {1, 0}) {
    holders[static_cast<std::size_t>(released)].end();
    await_collected(large, released == 1 ? std::vector{1} : std::vector{0, 1});
    EXPECT_FALSE(attempt.try_acquire());
    EXPECT_FALSE(attempt.try_acquire_for(20ms));
    EXPECT_FALSE(small.has_units());
  }
  holders[2].end();
  EXPECT_EQ(large.await_units(), (std::vector{0, 1, 2}));
  EXPECT_FALSE(small.has_units());
  large.end();
  EXPECT_EQ(small.await_units().size(), 1u) << "the first that was free when it looked";
  small.end();
}

TEST_F(DomainSeveralUnits, TheDomainShowsOneParticipantWithItsUnits) {
  taker first = take(2, 4);
  EXPECT_EQ(first.await_units(), (std::vector{0, 1}));
  taker second = take(3, 4);
  await_collected(second, {2, 3});
  const auto users = in_.users_of("s");
  ASSERT_EQ(users.size(), 2u);
  EXPECT_EQ(users[0].pid, first.pid());
  EXPECT_EQ(users[0].unit, 0);
  EXPECT_EQ(users[0].units_held, (std::vector{0, 1}));
  EXPECT_TRUE(users[1].waits());
  EXPECT_EQ(users[1].unit, -1);
  first.end();
  EXPECT_EQ(second.await_units().size(), 3u);
  second.end();
}

TEST_F(DomainSeveralUnits, S7AnAcquireThatGivesUpGivesBackWhatItHasCollected) {
  taker holds = take(1, 3);
  static_cast<void>(holds.await_units());
  named_semaphore large = handle(3, 3);
  EXPECT_FALSE(large.try_acquire());
  EXPECT_FALSE(large.try_acquire_for(30ms));
  named_semaphore rest = handle(2, 3);
  EXPECT_TRUE(rest.try_acquire());
  rest.release();
  std::atomic<bool> is_interrupted{false};
  named_semaphore waiting = handle(3, 3);
  named_control(waiting).interrupt_with([&] { return is_interrupted.load(); });
  std::thread waits([&] { EXPECT_REFUSED(interrupted, "'s'", waiting.acquire()); });
  while (in_.users_of("s").size() < 2 || in_.users_of("s")[1].units_held.size() < 2)
    std::this_thread::sleep_for(1ms);
  is_interrupted = true;
  named_control(waiting).ask_now();
  waits.join();
  EXPECT_TRUE(rest.try_acquire());
  rest.release();
  holds.end();
  expect_all_free(3);
}

TEST_F(DomainSeveralUnits, S4AWaiterThatIsKilledGuardsNothing) {
  taker holds = take(1, 3);
  static_cast<void>(holds.await_units());
  taker large = take(3, 3);
  await_collected(large, {1, 2});
  taker next = take(2, 3);
  await_collected(next, {});
  large.kill();
  EXPECT_EQ(next.await_units(), (std::vector{1, 2}));
  EXPECT_FALSE(next.saw_a_death());
  next.end();
  holds.end();
  expect_all_free(3);
}

TEST_F(DomainSeveralUnits, AKilledHolderIsToldToTheNextHolderOfAnyOfItsUnits) {
  taker holds = take(2, 3);
  EXPECT_EQ(holds.await_units(), (std::vector{0, 1}));
  holds.kill();
  named_semaphore two = handle(2, 3);
  ASSERT_TRUE(two.try_acquire_for(5s));
  EXPECT_TRUE(two.owner_died());
  two.mark_consistent();
  EXPECT_FALSE(two.owner_died());
  two.release();
  expect_all_free(3);
}

// A thread that guards something under another lock is not left out, whatever it waits for.
TEST_F(DomainSeveralUnits, ADeathWithAnotherLockIsToldThere) {
  taker holds = take(1, 2);
  static_cast<void>(holds.await_units());
  taker large = take(2, 2, "guarded");
  await_collected(large, {1});
  large.kill();
  named_mutex guarded(in_, "guarded");
  ASSERT_TRUE(guarded.try_lock_for(5s));
  EXPECT_TRUE(guarded.owner_died());
  holds.end();
}

TEST_F(DomainSeveralUnits, ADeathInAFunctionThatIsCalledMeanwhileIsToldToo) {
  taker holds = take(1, 2);
  static_cast<void>(holds.await_units());
  child large([&] {
    named_semaphore s = handle(2, 2);
    named_control(s).interrupt_with([&] {
      if (in_.users_of("s").back().units_held.empty()) return false;
      named_mutex guarded(in_, "guarded");
      guarded.lock();
      raise(SIGKILL);
      return true;
    });
    s.acquire();
    return 0;
  });
  EXPECT_EQ(large.wait(), 1000 + SIGKILL);
  named_mutex guarded(in_, "guarded");
  ASSERT_TRUE(guarded.try_lock_for(5s));
  EXPECT_TRUE(guarded.owner_died());
  holds.end();
}

TEST_F(DomainSeveralUnits, S6OthersPassAStoppedHeadOnlyWithAllThatTheyWant) {
  taker first = take(1, 4);
  static_cast<void>(first.await_units());
  taker second = take(2, 4);
  EXPECT_EQ(second.await_units(), (std::vector{1, 2}));
  taker head = take(3, 4);
  await_collected(head, {3});
  taker next = take(2, 4);
  await_collected(next, {});
  head.signal(SIGSTOP);
  first.end();
  named_semaphore attempt = handle(2, 4);
  const auto before = clock::now();
  EXPECT_FALSE(attempt.try_acquire()) << "one unit is free";
  EXPECT_FALSE(next.has_units());
  second.end();
  EXPECT_EQ(next.await_units().size(), 2u);
  EXPECT_LT(clock::now() - before, 5s);
  head.signal(SIGCONT);
  next.end();
  EXPECT_EQ(head.await_units().size(), 3u);
  head.end();
  expect_all_free(4);
}

// Participants that take one to three of three units are killed, stopped and given up at any
// moment. None waits for ever, no unit has two holders, and none is lost.
TEST_F(DomainSeveralUnits, S7NobodyWaitsForEverAndNoUnitIsLost) {
  constexpr int units = 3;
  struct counts {
    std::atomic<pid_t> holder[units];  // 0, or the process that holds the unit
    std::atomic<int> wrong, acquires[units];
  };
  auto& seen = shared_words<counts>();
  const auto work = [&](int count) {
    named_semaphore s = handle(count, units);
    for (int i = 0;; ++i) {
      if (i % 3 == 0)
        while (!s.try_acquire_for(2ms)) {
        }
      else if (i % 3 == 1 && !s.try_acquire())
        continue;
      else if (i % 3 == 2)
        s.acquire();
      const bool died = s.owner_died();
      for (const int unit : s.units_held()) {
        const pid_t other = seen.holder[unit].exchange(getpid());
        // What a dead holder left may be there; a living one is wrong.
        if (other != 0 && !died) ++seen.wrong;
      }
      if (died) s.mark_consistent();
      for (const int unit : s.units_held()) seen.holder[unit] = 0;
      ++seen.acquires[count - 1];
      s.release();
    }
    return 0;
  };
  std::mt19937 random(11);
  std::vector<std::pair<int, child>> all;
  const auto start = [&](int count) {
    all.emplace_back(count, child([&] { return work(count); }));
  };
  for (const int count : {1, 1, 2, 3}) start(count);
  for (int round = 0; round < 40; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 4000));
    auto& [count, which] = all[random() % all.size()];
    if (random() % 3 == 0) {
      kill(which.pid(), SIGSTOP);
      std::this_thread::sleep_for(2ms);
      kill(which.pid(), SIGCONT);
      continue;
    }
    which.kill();
    EXPECT_EQ(which.wait(), 1000 + SIGKILL);
    which = child([&, count = count] { return work(count); });
  }
  // The largest requests are served as well, while the small ones go on.
  const int before = seen.acquires[units - 1];
  while (seen.acquires[units - 1] < before + 20) std::this_thread::sleep_for(1ms);
  for (auto& [count, each] : all) {
    each.kill();
    EXPECT_EQ(each.wait(), 1000 + SIGKILL);
  }
  EXPECT_EQ(seen.wrong, 0);
  named_semaphore mine = handle(units, units);
  ASSERT_TRUE(mine.try_acquire_for(5s));
}

// The head has one unit of two, the other one's holder waits for what the head's thread holds.
TEST_F(DomainSeveralUnits, ACircleWithAWaiterThatCollectsIsSeen) {
  child other([&] {
    named_semaphore one = handle(1, 2);
    one.acquire();
    named_mutex guarded(in_, "guarded");
    while (in_.users_of("guarded").empty()) usleep(500);
    guarded.lock();
    return 0;
  });
  while (in_.users_of("s").empty()) std::this_thread::sleep_for(1ms);
  taker large = take(2, 2, "guarded");
  await_collected(large, {1});
  while (in_.circles().empty()) std::this_thread::sleep_for(1ms);
  large.kill();
  EXPECT_EQ(other.wait(), 0);
}

}  // namespace
}  // namespace lockflight::test
