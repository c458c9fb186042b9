// Leaders (election.hpp), on one machine.
#include "lockflight/election.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

TEST(Election, ACandidateLeadsAndStepsDown) {
  const own_domain own;
  const auto d = domain::open(own.name());
  election one(d, "scheduler", "10.0.0.5:8080");
  EXPECT_FALSE(one.is_leader());
  EXPECT_EQ(one.term(), 0U);
  EXPECT_FALSE(one.leader_now());
  EXPECT_REFUSED(not_held, "'scheduler'", one.step_down());
  EXPECT_REFUSED(not_held, "'scheduler'", one.publish("x"));
  EXPECT_TRUE(one.campaign());
  EXPECT_TRUE(one.is_leader());
  EXPECT_EQ(one.leader_now(), (leader{"10.0.0.5:8080", one.term()}));
  EXPECT_REFUSED(held, "'scheduler'", static_cast<void>(one.campaign()));
  EXPECT_TRUE(one.is_leader());
  one.publish("10.0.0.6:8080");
  EXPECT_EQ(one.leader_now().value, "10.0.0.6:8080");
  std::thread([&] {
    election other(d, "scheduler", "other");
    EXPECT_FALSE(other.campaign(limit::at_once()));
    EXPECT_FALSE(other.campaign(20ms));
    EXPECT_EQ(other.leader_now().value, "10.0.0.6:8080");
  }).join();
  const std::uint64_t first = one.term();
  one.step_down();
  EXPECT_FALSE(one.is_leader());
  EXPECT_FALSE(one.leader_now());
  EXPECT_TRUE(one.campaign());
  EXPECT_GT(one.term(), first);
  EXPECT_EQ(one.value(), "10.0.0.6:8080");
  one.step_down();
}

TEST(Election, ATooLongValueIsRefused) {
  const own_domain own;
  const auto d = domain::open(own.name());
  EXPECT_REFUSED(invalid, "at most 65000", election(d, "a", std::string(65'001, 'x')));
  EXPECT_REFUSED(invalid, "lock name ''", election(d, ""));
}

// An observer sees each of two processes that lead in turns, a death, and that nobody leads.
TEST(Election, ObserversSeeEachLeader) {
  const own_domain own;
  const auto d = domain::open(own.name());
  std::atomic<int> seen{0};
  std::atomic<bool> sees_the_end{false};
  constexpr int observers = 8;
  std::vector<std::thread> all;
  for (int i = 0; i < observers; ++i)
    all.emplace_back([&] {
      election watched(d, "a");
      leader last;
      for (const char* const next : {"first", "", "second", ""}) {
        last = watched.await_change(last, 20s);
        EXPECT_EQ(last.value, next);
        EXPECT_EQ(static_cast<bool>(last), *next != '\0');
        ++seen;
      }
    });
  const auto await_seen = [&](int times) {
    while (seen < times * observers) std::this_thread::sleep_for(1ms);
  };
  election one(d, "a", "first");
  EXPECT_TRUE(one.campaign());
  await_seen(1);
  one.step_down();
  await_seen(2);
  child dies([&] {
    election its(d, "a", "second");
    if (!its.campaign()) return 1;
    pause();
    return 0;
  });
  await_seen(3);
  dies.kill();
  await_seen(4);
  for (std::thread& each : all) each.join();
}

// A leader that steps down for another candidate is followed by that one, though others have waited
// for longer.
TEST(Election, AnotherIsPreferred) {
  const own_domain own;
  const auto d = domain::open(own.name());
  election leads(d, "a", "leads");
  EXPECT_TRUE(leads.campaign());
  std::vector<std::thread> candidates;
  std::atomic<bool> is_over{false};
  std::vector<std::string> order;
  for (const char* const value : {"first", "second", "preferred"}) {
    candidates.emplace_back([&, value] {
      election its(d, "a", value);
      EXPECT_TRUE(its.campaign());
      order.emplace_back(value);  // one at a time leads
      its.step_down();
    });
    await_waiters(d, candidates.size());
  }
  leads.step_down_for("preferred");
  for (std::thread& each : candidates) each.join();
  ASSERT_EQ(order.size(), 3U);
  EXPECT_EQ(order.front(), "preferred");
}

// Candidates lead in the order of their priorities, and equal ones in that in which they came.
TEST(Election, APriorityComesBeforeALesserOne) {
  const own_domain own;
  const auto d = domain::open(own.name());
  EXPECT_REFUSED(invalid, "priority -1 of a candidate (accepted: 0 to 1000)",
                 election(d, "a", "", -1));
  EXPECT_REFUSED(invalid, "priority 1001", election(d, "a", "", 1'001));
  election leads(d, "a", "leads");
  EXPECT_TRUE(leads.campaign());
  std::vector<std::thread> candidates;
  std::vector<int> order;
  for (const int priority : {0, 1, 0, 7, 1}) {
    candidates.emplace_back([&, priority] {
      election its(d, "a", "", priority);
      EXPECT_TRUE(its.campaign());
      order.emplace_back(priority);  // one at a time leads
      its.step_down();
    });
    await_waiters(d, candidates.size());
  }
  int shown = 0;
  for (const lock_user& each : d.users_of("a")) shown += each.priority;
  EXPECT_EQ(shown, 1 + 7 + 1);
  leads.step_down();
  for (std::thread& each : candidates) each.join();
  EXPECT_EQ(order, (std::vector<int>{7, 1, 1, 0, 0}));
}

TEST(Election, APriorityIsNotThatOfALaterWait) {
  const own_domain own;
  const auto d = domain::open(own.name());
  election one(d, "a", "one", 9);
  EXPECT_TRUE(one.campaign());
  one.step_down();
  named_mutex other(d, "other");
  other.lock();
  std::thread waiter([&] {
    election its(d, "a", "its", 5);
    EXPECT_TRUE(its.campaign());
    its.step_down();
    named_mutex mine(d, "other");
    mine.lock();
    mine.unlock();
  });
  await_waiters(d, 1);
  for (const lock_user& each : d.users_of("other")) EXPECT_EQ(each.priority, 0);
  other.unlock();
  waiter.join();
}

TEST(Election, SomebodyLeadsIfThePreferredOneIsNotThere) {
  const own_domain own;
  const auto d = domain::open(own.name());
  election leads(d, "a", "leads");
  EXPECT_TRUE(leads.campaign());
  leads.step_down_for("nobody");
  EXPECT_FALSE(leads.leader_now()) << "a preference is no leader";
  EXPECT_FALSE(leads.campaign(limit::at_once()));
  const auto begun = clock::now();
  EXPECT_TRUE(leads.campaign());
  EXPECT_LT(clock::now() - begun, 10s);
  EXPECT_EQ(leads.leader_now().value, "leads");
  leads.step_down();
}

TEST(Election, AnObserverFollowsItsDomain) {
  const own_domain own;
  const auto d = domain::open(own.name());
  std::atomic<bool> has_seen{false};
  std::thread observer([&] {
    election watched(d, "a");
    const leader first = watched.await_change({}, 20s);
    EXPECT_EQ(first.value, "before");
    has_seen = true;
    EXPECT_FALSE(watched.await_change(first, 20s));
    EXPECT_EQ(watched.await_change({}, 20s).value, "after");
  });
  election before(d, "a", "before");
  EXPECT_TRUE(before.campaign());
  while (!has_seen) std::this_thread::sleep_for(1ms);
  domain::remove(own.name(), true);
  std::this_thread::sleep_for(1500ms);  // until the observer has seen that nobody leads there
  election after(domain::open(own.name()), "a", "after");
  EXPECT_TRUE(after.campaign());
  observer.join();
}

// Also one that campaigns for short times only.
TEST(Election, AnAbsentOneIsPreferredForTwoSecondsInAll) {
  const own_domain own;
  const auto d = domain::open(own.name());
  election leads(d, "a", "leads");
  EXPECT_TRUE(leads.campaign());
  leads.step_down_for("nobody");
  election other(d, "a", "other");
  const auto begun = clock::now();
  while (!other.campaign(100ms)) ASSERT_LT(clock::now() - begun, 20s);
  EXPECT_GT(clock::now() - begun, 1'500ms);
  other.step_down();
}

TEST(Election, APreferenceComesBeforePriorities) {
  const own_domain own;
  const auto d = domain::open(own.name());
  election leads(d, "a", "leads");
  EXPECT_TRUE(leads.campaign());
  std::vector<std::string> order;
  std::vector<std::thread> candidates;
  for (const auto& [value, priority] : {std::pair{"great", 9}, std::pair{"preferred", 0}}) {
    candidates.emplace_back([&, value, priority] {
      election its(d, "a", value, priority);
      EXPECT_TRUE(its.campaign());
      order.emplace_back(value);
      its.step_down();
    });
    await_waiters(d, candidates.size());
  }
  const auto begun = clock::now();
  leads.step_down_for("preferred");
  for (std::thread& each : candidates) each.join();
  EXPECT_EQ(order, (std::vector<std::string>{"preferred", "great"}));
  EXPECT_LT(clock::now() - begun, 1'500ms);
}

TEST(Election, ALostTermEndsInFavourOfAnotherToo) {
  const own_domain own;
  const auto d = domain::open(own.name());
  election one(d, "a", "one", 3);
  EXPECT_TRUE(one.campaign());
  domain::remove(own.name(), true);
  while (one.is_leader()) std::this_thread::sleep_for(1ms);
  one.step_down_for("other");
  EXPECT_FALSE(one.role().is_held());
  EXPECT_TRUE(one.campaign()) << "with a priority, in the domain that has the name now";
  one.step_down();
}

TEST(Election, ATermThatIsLostEndsAndAnotherBegins) {
  const own_domain own;
  const auto d = domain::open(own.name());
  election one(d, "a", "one");
  EXPECT_TRUE(one.campaign());
  const auto token = one.loss();
  domain::remove(own.name(), true);
  while (!token.stop_requested()) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(one.is_leader());
  EXPECT_TRUE(one.campaign()) << "in the domain that has the name now";
  EXPECT_TRUE(one.is_leader());
  EXPECT_EQ(one.leader_now().value, "one");
  one.step_down();
}

}  // namespace
}  // namespace lockflight::test
