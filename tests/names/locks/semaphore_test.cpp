// named_semaphore: at most N hold, in order of arrival, also if holders and waiters are killed or
// stopped. The names of the tests that are about an invariant of units_handle.cpp have its
// label.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// Of all processes of the test.
std::atomic<int>& next_place = shared_words<std::atomic<int>>();

/// A process that holds a unit until it is to release it.
class unit_holder {
 public:
  unit_holder(const std::string& in, const std::string& name, int units)
      : state_(shared_words<state>()), child_([in, name, units, this] {
          named_semaphore s(domain::open(in), name, units);
          state_.asks = true;
          s.acquire();
          state_.owner_died = s.owner_died();
          state_.place = next_place++;
          state_.unit = s.unit() + 1;
          while (!state_.is_to_release) usleep(500);
          s.release();
          return 0;
        }) {}

  /// 1 + the unit that it holds; 0 while it waits.
  [[nodiscard]] int await_unit() const {
    while (state_.unit == 0) usleep(500);
    return state_.unit - 1;
  }
  [[nodiscard]] bool has_unit() const { return state_.unit != 0; }
  [[nodiscard]] bool saw_a_death() const { return state_.owner_died; }
  /// Its place in the order in which processes got units.
  [[nodiscard]] int place() const { return state_.place; }
  void release() { state_.is_to_release = true; }
  void kill() {
    child_.kill();
    EXPECT_EQ(child_.wait(), 1000 + SIGKILL);
  }
  void stop() const { ::kill(child_.pid(), SIGSTOP); }
  [[nodiscard]] int pid() const { return child_.pid(); }
  void end() {
    release();
    EXPECT_EQ(child_.wait(), 0);
  }

 private:
  struct state {
    std::atomic<bool> asks, owner_died, is_to_release;
    std::atomic<int> unit, place;
  };
  state& state_;
  child child_;
};

class DomainSemaphore : public testing::Test {
 protected:
  [[nodiscard]] unit_holder holder(int units) const { return {own_.name(), "s", units}; }
  /// Of the semaphore, as the domain shows it.
  [[nodiscard]] domain_lock shown() const {
    for (const domain_lock& each : in_.locks())
      if (each.name == "s") return each;
    return {};
  }
  [[nodiscard]] std::size_t count(mode held) const {
    const auto uses = shown().users;
    return static_cast<std::size_t>(std::count_if(
        uses.begin(), uses.end(), [&](const lock_user& each) { return each.held == held; }));
  }
  void await_count(mode held, std::size_t number) const {
    while (count(held) != number) std::this_thread::sleep_for(1ms);
  }

  own_domain own_;
  domain in_ = domain::open(own_.name());
};

TEST_F(DomainSemaphore, EachHolderHasAUnitAndTheFirstFreeOneIsTaken) {
  named_semaphore a(in_, "s", 3);
  named_semaphore b(in_, "s", 3);
  named_semaphore c(in_, "s", 3);
  EXPECT_EQ(a.units(), 3);
  EXPECT_EQ(a.unit(), -1);
  EXPECT_FALSE(a.is_held());
  a.acquire();
  b.acquire();
  EXPECT_TRUE(c.try_acquire());
  EXPECT_EQ(a.unit(), 0);
  EXPECT_EQ(b.unit(), 1);
  EXPECT_EQ(c.unit(), 2);
  const auto token = b.token();
  b.release();
  EXPECT_EQ(b.unit(), -1);
  EXPECT_TRUE(b.try_acquire_for(1s));
  EXPECT_EQ(b.unit(), 1);
  EXPECT_GT(b.token(), token);
  EXPECT_TRUE(b.still_valid());
  EXPECT_EQ(b.valid_for(), std::chrono::nanoseconds::max());
  EXPECT_FALSE(b.is_lost());
}

TEST_F(DomainSemaphore, S1AtMostNHoldAndEachAnotherUnit) {
  constexpr int units = 3;
  struct counts {
    std::atomic<int> holders, most, of_unit[units];
    std::atomic<bool> shared_a_unit;
  };
  auto& seen = shared_words<counts>();
  std::vector<child> all;
  for (int i = 0; i < 6; ++i)
    all.emplace_back([&, i] {
      named_semaphore s(domain::open(own_.name()), "s", units);
      for (int round = 0; round < 300; ++round) {
        if ((round + i) % 3 == 0)
          while (!s.try_acquire()) std::this_thread::yield();
        else if ((round + i) % 3 == 1)
          while (!s.try_acquire_for(2ms)) {
          }
        else
          s.acquire();
        const int now = ++seen.holders;
        int most = seen.most;
        while (now > most && !seen.most.compare_exchange_weak(most, now)) {
        }
        if (++seen.of_unit[s.unit()] != 1) seen.shared_a_unit = true;
        if (round % 16 == 0) std::this_thread::yield();
        --seen.of_unit[s.unit()];
        --seen.holders;
        s.release();
      }
      return 0;
    });
  for (child& each : all) EXPECT_EQ(each.wait(), 0);
  EXPECT_LE(seen.most, units);
  EXPECT_FALSE(seen.shared_a_unit);
  EXPECT_TRUE(shown().users.empty());
}

TEST_F(DomainSemaphore, WaitersGetUnitsInTheOrderInWhichTheyCame) {
  named_semaphore a(in_, "s", 2);
  named_semaphore b(in_, "s", 2);
  a.acquire();
  b.acquire();
  std::vector<std::unique_ptr<unit_holder>> waiters;
  for (std::size_t i = 0; i < 5; ++i) {
    waiters.push_back(std::make_unique<unit_holder>(own_.name(), "s", 2));
    await_count(mode::none, i + 1);
  }
  named_semaphore late(in_, "s", 2);
  a.release();
  EXPECT_FALSE(late.try_acquire()) << "an attempt overtakes nobody";
  for (auto& each : waiters) {
    EXPECT_EQ(each->await_unit(), 0);
    each->end();
  }
  for (std::size_t i = 1; i < waiters.size(); ++i)
    EXPECT_EQ(waiters[i]->place(), waiters[i - 1]->place() + 1);
}

TEST_F(DomainSemaphore, S2AnyReleaseWakesTheHeadAtOnce) {
  std::vector<unit_holder> holders;
  holders.reserve(3);
  for (int i = 0; i < 3; ++i) {
    holders.emplace_back(own_.name(), "s", 3);
    EXPECT_EQ(holders.back().await_unit(), i);
  }
  std::vector<clock::duration> took;
  for (int round = 0; round < 5; ++round) {
    named_semaphore mine(in_, "s", 3);
    auto& given = holders[static_cast<std::size_t>(1 + round % 2)];
    clock::time_point released;
    std::thread gives([&] {
      await_count(mode::none, 1);
      std::this_thread::sleep_for(30ms);
      released = clock::now();
      given.release();
    });
    mine.acquire();
    took.push_back(clock::now() - released);
    gives.join();
    EXPECT_EQ(mine.unit(), 1 + round % 2);
    mine.release();
    given.end();
    given.~unit_holder();
    new (&given) unit_holder(own_.name(), "s", 3);
    EXPECT_EQ(given.await_unit(), 1 + round % 2);
  }
  std::sort(took.begin(), took.end());
  EXPECT_LT(took[2], 500ms) << "without the wake-up it takes up to a second";
  for (auto& each : holders) each.end();
}

TEST_F(DomainSemaphore, S3AKilledHoldersUnitBecomesFreeAndItsNextHolderIsTold) {
  auto first = holder(2);
  EXPECT_EQ(first.await_unit(), 0);
  auto second = holder(2);
  EXPECT_EQ(second.await_unit(), 1);
  auto waiter = holder(2);
  await_count(mode::none, 1);
  const auto before = clock::now();
  second.kill();
  EXPECT_EQ(waiter.await_unit(), 1);
  EXPECT_LT(clock::now() - before, 700ms) << "the head looks after the holders";
  EXPECT_TRUE(waiter.saw_a_death());
  first.end();
  named_semaphore other(in_, "s", 2);
  other.acquire();
  EXPECT_EQ(other.unit(), 0);
  EXPECT_FALSE(other.owner_died()) << "nobody died with this unit";
  EXPECT_TRUE(shown().owner_died);
  waiter.end();
  named_semaphore repairs(in_, "s", 2);
  repairs.acquire();
  EXPECT_EQ(repairs.unit(), 1);
  EXPECT_TRUE(repairs.owner_died());
  repairs.mark_consistent();
  EXPECT_FALSE(repairs.owner_died());
  EXPECT_FALSE(shown().owner_died);
}

TEST_F(DomainSemaphore, S4KilledWaitersLeaveTheQueue) {
  auto holds = holder(1);
  EXPECT_EQ(holds.await_unit(), 0);
  auto head = holder(1);
  await_count(mode::none, 1);
  auto middle = holder(1);
  await_count(mode::none, 2);
  auto last = holder(1);
  await_count(mode::none, 3);
  head.kill();
  middle.kill();
  await_count(mode::none, 1);
  holds.end();
  EXPECT_EQ(last.await_unit(), 0);
  EXPECT_FALSE(last.saw_a_death()) << "a waiter guards nothing";
  last.end();
  named_semaphore after(in_, "s", 1);
  EXPECT_TRUE(after.try_acquire()) << "a dead head may have left its mark";
}

TEST_F(DomainSemaphore, S5AStoppedHeadDelaysNobody) {
  auto first = holder(2);
  EXPECT_EQ(first.await_unit(), 0);
  auto second = holder(2);
  EXPECT_EQ(second.await_unit(), 1);
  auto head = holder(2);
  await_count(mode::none, 1);
  auto next = holder(2);
  await_count(mode::none, 2);
  head.stop();
  first.end();
  const auto before = clock::now();
  EXPECT_EQ(next.await_unit(), 0);
  EXPECT_LT(clock::now() - before, 3s);
  EXPECT_FALSE(head.has_unit());
  second.end();
  named_semaphore attempt(in_, "s", 2);
  EXPECT_TRUE(attempt.try_acquire());
  EXPECT_EQ(attempt.unit(), 1);
  attempt.release();
  kill(head.pid(), SIGCONT);
  EXPECT_EQ(head.await_unit(), 1);
  head.end();
  next.end();
}

TEST_F(DomainSemaphore, AttemptsAtTheSameTimeAllSucceedWhileThereAreUnits) {
  auto& ready = shared_words<std::atomic<int>>();
  auto& done = shared_words<std::atomic<int>>();
  for (int round = 0; round < 10; ++round) {
    ready = done = 0;
    std::vector<child> all;
    for (int i = 0; i < 4; ++i)
      all.emplace_back([&] {
        named_semaphore s(domain::open(own_.name()), "s", 4);
        ++ready;
        while (ready < 4) std::this_thread::yield();
        const bool had = s.try_acquire();
        ++done;
        while (done < 4) std::this_thread::yield();
        return had ? 0 : 1;
      });
    for (child& each : all) EXPECT_EQ(each.wait(), 0);
  }
}

TEST_F(DomainSemaphore, TimeLimitsAndAttemptsEnd) {
  named_semaphore holds(in_, "s", 1);
  holds.acquire();
  const auto before = clock::now();
  std::thread([&] {
    named_semaphore s(in_, "s", 1);
    EXPECT_FALSE(s.try_acquire());
    EXPECT_FALSE(s.try_acquire_for(50ms));
    EXPECT_FALSE(s.try_acquire_until(clock::now() + 50ms));
    EXPECT_FALSE(s.is_held());
    EXPECT_GE(clock::now() - before, 100ms);
  }).join();
  EXPECT_LT(clock::now() - before, 2s);
  auto head = holder(1);
  await_count(mode::none, 1);
  std::thread([&] {
    named_semaphore s(in_, "s", 1);
    auto quickest = clock::duration::max();
    for (int i = 0; i < 5; ++i) {
      const auto start = clock::now();
      EXPECT_FALSE(s.try_acquire());
      quickest = std::min<clock::duration>(quickest, clock::now() - start);
    }
    EXPECT_LT(quickest, 50ms) << "an attempt does not wait for a head that waits";
    EXPECT_FALSE(s.try_acquire_for(50ms)) << "the head leaves only when this has ended";
    EXPECT_FALSE(s.try_acquire_until(clock::now() + 50ms));
  }).join();
  holds.release();
  EXPECT_EQ(head.await_unit(), 0);
  head.end();
  EXPECT_TRUE(holds.try_acquire());
}

TEST_F(DomainSemaphore, UsersWhoDisagreeAreRefusedAndBothAreNamed) {
  named_semaphore three(in_, "s", 3);
  three.acquire();
  const std::string by = "made by process " + std::to_string(getpid());
  EXPECT_REFUSED(disagrees, "'s' is a semaphore of 3 units (" + by, named_semaphore(in_, "s", 4));
  EXPECT_REFUSED(disagrees, "not a semaphore of 4 units", named_semaphore(in_, "s", 4));
  EXPECT_REFUSED(disagrees, "'s' is a semaphore of 3 units (" + by, named_mutex(in_, "s"));
  EXPECT_REFUSED(disagrees, "not a flight-rw (accepted: a semaphore of 3 units",
                 named_mutex(in_, "s"));
  named_mutex lock(in_, "m");
  lock.lock();
  EXPECT_REFUSED(disagrees, "'m' is a flight-rw (" + by, named_semaphore(in_, "m", 2));
  EXPECT_REFUSED(disagrees, "not a semaphore of 2 units (accepted: kind flight-rw",
                 named_semaphore(in_, "m", 2));
  for (const int bad : {0, -1, 1025})
    EXPECT_REFUSED(invalid, std::to_string(bad) + " units (accepted: 1 to 1024",
                   named_semaphore(in_, "t", bad));
  EXPECT_REFUSED(invalid, "1 to 255", named_semaphore(in_, std::string(256, 'x'), 2));
  EXPECT_REFUSED(invalid, "kind 'semaphore'",
                 named_lock(in_, "t", {.kind = "semaphore", .parameters = "units=2"}));
  named_semaphore longest(in_, std::string(255, 'x'), 1024);
  EXPECT_TRUE(longest.try_acquire());
}

TEST_F(DomainSemaphore, ItIsForgottenAsAWholeAndOnlyIfNobodyUsesIt) {
  auto holds = holder(2);
  EXPECT_EQ(holds.await_unit(), 0);
  EXPECT_REFUSED(held, "'s'", static_cast<void>(in_.remove_lock("s")));
  EXPECT_REFUSED(disagrees, "", named_semaphore(in_, "s", 3));
  EXPECT_EQ(shown().units, 2);
  holds.end();
  EXPECT_TRUE(in_.remove_lock("s"));
  EXPECT_EQ(in_.names(), 0u);
  named_semaphore three(in_, "s", 3);
  three.acquire();
  EXPECT_EQ(shown().units, 3);
}

TEST_F(DomainSemaphore, ItIsNotDroppedForWantOfRoomWhileAUnitIsHeld) {
  own_domain small("s");
  const auto in = domain::open(small.name(), {.names = 8});
  named_semaphore s(in, "s", 3);
  s.acquire();
  for (int i = 0; i < 40; ++i) {
    named_mutex m(in, "m" + std::to_string(i));
    m.lock();
    m.unlock();
  }
  EXPECT_REFUSED(disagrees, "3 units", named_semaphore(in, "s", 4));
}

TEST_F(DomainSemaphore, TheDomainShowsHoldersWithTheirUnitsAndWaiters) {
  auto first = holder(2);
  EXPECT_EQ(first.await_unit(), 0);
  auto second = holder(2);
  EXPECT_EQ(second.await_unit(), 1);
  auto head = holder(2);
  await_count(mode::none, 1);
  auto next = holder(2);
  await_count(mode::none, 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // ticks of the clock of waits
  const domain_lock now = shown();
  EXPECT_EQ(now.kind, "semaphore");
  EXPECT_EQ(now.units, 2);
  EXPECT_EQ(in_.locks().size(), 1u) << "its parts are not shown";
  ASSERT_EQ(now.users.size(), 4u);
  for (const lock_user& each : now.users) {
    const bool holds = each.pid == first.pid() || each.pid == second.pid();
    EXPECT_EQ(each.held, holds ? mode::exclusive : mode::none);
    EXPECT_EQ(each.unit, each.pid == first.pid() ? 0 : each.pid == second.pid() ? 1 : -1);
    EXPECT_GT(each.for_ns, 0u);
  }
  head.kill();
  next.kill();
  first.end();
  second.end();
}

TEST_F(DomainSemaphore, AThreadIsToldBeforeItWaitsForItself) {
  named_semaphore a(in_, "s", 2);
  named_semaphore b(in_, "s", 2);
  named_semaphore c(in_, "s", 2);
  a.acquire();
  EXPECT_REFUSED(held, "holds a unit already", a.acquire());
  b.acquire();
  EXPECT_REFUSED(held, "hold all its 2 units", c.acquire());
  EXPECT_REFUSED(not_held, "holds no unit", c.release());
  b.release();
  EXPECT_REFUSED(not_held, "holds no unit", b.release());
  EXPECT_REFUSED(not_held, "holds no unit", b.mark_consistent());
  c.acquire();
  std::thread([&] { EXPECT_REFUSED(wrong_thread, "another thread's", c.release()); }).join();
  EXPECT_TRUE(c.is_held());
}

TEST_F(DomainSemaphore, AWaitIsInterrupted) {
  named_semaphore holds(in_, "s", 1);
  holds.acquire();
  struct waiter {
    std::unique_ptr<named_semaphore> semaphore;
    std::atomic<bool> is_interrupted{false};
    std::thread thread;
  };
  std::vector<waiter> waiters(2);  // the head, and one behind it
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    waiter& w = waiters[i];
    w.semaphore = std::make_unique<named_semaphore>(in_, "s", 1);
    named_control(*w.semaphore).interrupt_with([&w] { return w.is_interrupted.load(); });
    w.thread = std::thread([&w] { EXPECT_REFUSED(interrupted, "'s'", w.semaphore->acquire()); });
    await_count(mode::none, i + 1);
  }
  for (std::size_t i = waiters.size(); i-- > 0;) {
    const auto before = clock::now();
    waiters[i].is_interrupted = true;
    named_control(*waiters[i].semaphore).ask_now();
    waiters[i].thread.join();
    EXPECT_LT(clock::now() - before, 500ms);
  }
  holds.release();
  EXPECT_TRUE(holds.try_acquire());
}

TEST_F(DomainSemaphore, AHandleThatIsDroppedFreesItsUnitAsADeathDoes) {
  auto dropped = std::make_unique<named_semaphore>(in_, "s", 1);
  dropped->acquire();
  auto waiter = holder(1);
  await_count(mode::none, 1);
  dropped.reset();
  EXPECT_EQ(waiter.await_unit(), 0);
  EXPECT_TRUE(waiter.saw_a_death());
  waiter.end();
}

TEST_F(DomainSemaphore, AHoldLastsAsLongAsTheProcessThatItWasExtendedTo) {
  auto& step = shared_words<std::atomic<int>>();
  child run([&] {
    named_semaphore s(in_, "s", 1);
    s.acquire();
    const pid_t command = fork();
    if (command == 0) {
      named_control(s).extend_to_this_process();
      step = 1;
      while (step == 1) usleep(1000);
      _exit(0);
    }
    while (step == 0) usleep(1000);
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(run.wait(), 1000 + SIGKILL);
  named_semaphore s(in_, "s", 1);
  EXPECT_FALSE(s.try_acquire_for(200ms)) << "its command still runs";
  step = 2;
  ASSERT_TRUE(s.try_acquire_for(3s));
  EXPECT_TRUE(s.owner_died());
}

TEST_F(DomainSemaphore, WaitersGoOnInThePresentDomain) {
  auto holds = holder(1);
  EXPECT_EQ(holds.await_unit(), 0);
  auto head = holder(1);
  await_count(mode::none, 1);
  auto next = holder(1);
  await_count(mode::none, 2);
  ASSERT_TRUE(domain::remove(own_.name(), true));
  in_ = domain::open(own_.name());
  const bool head_was_first = [&] {
    while (!head.has_unit() && !next.has_unit()) usleep(500);
    return head.has_unit();
  }();
  auto& first = head_was_first ? head : next;
  auto& second = head_was_first ? next : head;
  EXPECT_FALSE(second.has_unit()) << "the semaphore of the new domain has one unit as well";
  first.end();
  EXPECT_EQ(second.await_unit(), 0);
  second.end();
  holds.end();
}

// Participants are killed at any moment of acquires and releases; afterwards all units are there.
TEST_F(DomainSemaphore, UnitsSurviveDeathsAtAnyMoment) {
  constexpr int units = 2;
  struct counts {
    std::atomic<std::uint64_t> holder[units];  // 0, or the process that holds the unit
    std::atomic<int> wrong;
  };
  auto& seen = shared_words<counts>();
  const auto work = [&] {
    named_semaphore s(domain::open(own_.name()), "s", units);
    while (true) {
      s.acquire();
      const auto other =
          static_cast<pid_t>(seen.holder[s.unit()].exchange(static_cast<std::uint64_t>(getpid())));
      // What a dead holder left may be there; a living one is wrong.
      if (other != 0 && !s.owner_died()) ++seen.wrong;
      if (s.owner_died()) s.mark_consistent();
      seen.holder[s.unit()] = 0;
      s.release();
    }
    return 0;
  };
  std::mt19937 random(7);
  std::vector<child> all;
  for (int i = 0; i < 4; ++i) all.emplace_back(work);
  for (int round = 0; round < 60; ++round) {
    std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 3000));
    const std::size_t which = random() % all.size();
    all[which].kill();
    EXPECT_EQ(all[which].wait(), 1000 + SIGKILL);
    std::swap(all[which], all.back());
    all.pop_back();
    all.emplace_back(work);
  }
  for (child& each : all) {
    each.kill();
    EXPECT_EQ(each.wait(), 1000 + SIGKILL);
  }
  EXPECT_EQ(seen.wrong, 0);
  std::vector<named_semaphore> mine;
  for (int i = 0; i < units; ++i) {
    mine.emplace_back(in_, "s", units);
    ASSERT_TRUE(mine.back().try_acquire_for(5s));
  }
}

// More than the kinds of lock that a domain can have.
TEST(UnitsOfSemaphores, AnyNumberOfDifferentNAreOneKind) {
  const own_domain own;
  const domain d = domain::open(own.name());
  for (int units = 1; units <= 100; ++units) {
    named_semaphore s(d, "s" + std::to_string(units), units);
    s.acquire();
    s.release();
  }
  for (int units = 1; units <= 100; ++units) {
    const std::string name = "s" + std::to_string(units);
    EXPECT_THROW(named_semaphore(d, name, units + 1), domain_error);
    EXPECT_TRUE(named_semaphore(d, name, units).try_acquire());
  }
  for (const domain_lock& each : d.locks()) EXPECT_EQ(each.name, "s" + std::to_string(each.units));
}

// A name that was forgotten may come back with another N, in the same words.
TEST(UnitsOfSemaphores, AForgottenNameMayHaveAnotherN) {
  const own_domain own;
  domain d = domain::open(own.name());
  for (const int units : {3, 1, 2}) {
    named_semaphore s(d, "s", units);
    s.acquire();
    EXPECT_EQ(s.units(), units);
    s.release();
    EXPECT_TRUE(d.remove_lock("s"));
  }
}

}  // namespace
}  // namespace lockflight::test
