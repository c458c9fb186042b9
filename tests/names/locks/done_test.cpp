// Until when the work of a name counts as done (named_lock::done_until), and what a holder on one
// machine is told of deadlines.
#include <array>
#include <ctime>

#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

std::uint64_t seconds_now() { return static_cast<std::uint64_t>(time(nullptr)); }
constexpr std::uint64_t hour = 3'600;

TEST(DomainDone, AHolderSetsItAndAllRead) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  named_mutex other(d, "a");
  EXPECT_EQ(a.done_until(), 0U) << "a lock that nobody has made";
  a.lock();
  EXPECT_EQ(a.done_until(), 0U);
  a.set_done_until(17);
  EXPECT_EQ(a.done_until(), 17U);
  EXPECT_EQ(other.done_until(), 17U);
  named_control control(a);
  EXPECT_TRUE(control.set_done_until(18, limit::at_once()));
  EXPECT_EQ(control.done_until(limit::at_once()), 18U);
  EXPECT_EQ(control.missing_answer(), "");
  a.set_done_until(17);
  a.unlock();
  EXPECT_EQ(a.done_until(), 17U);
  EXPECT_EQ(named_mutex(d, "b").done_until(), 0U);
}

TEST(DomainDone, OnlyAnExclusiveHolderSetsIt) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_shared_mutex a(d, "a");
  const auto set = [&] { a.set_done_until(17); };
  EXPECT_EQ(refusal_of(set).first, static_cast<int>(domain_error::reason::not_held));
  a.lock_shared();
  EXPECT_EQ(refusal_of(set).first, static_cast<int>(domain_error::reason::not_held));
  a.unlock_shared();
  EXPECT_EQ(a.done_until(), 0U);
}

TEST(DomainDone, ItOutlivesADeathAndEndsWithTheName) {
  const own_domain own;
  auto d = domain::open(own.name());
  child one([&] {
    named_mutex a(d, "a");
    a.lock();
    a.set_done_until(17);
    raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(one.wait(), 1000 + SIGKILL);
  named_mutex a(d, "a");
  a.lock();
  EXPECT_TRUE(a.owner_died());
  EXPECT_EQ(a.done_until(), 17U);
  a.unlock();
  EXPECT_TRUE(d.remove_lock("a"));
  EXPECT_EQ(a.done_until(), 0U);
  a.lock();
  EXPECT_EQ(a.done_until(), 0U) << "the words are the old ones";
  a.unlock();
}

TEST(DomainDone, ANameIsNotDroppedBefore) {
  const own_domain own;
  auto d = domain::open(own.name(), {.names = 3});
  for (const auto& [name, until] :
       std::array<std::pair<const char*, std::uint64_t>, 3>{{{"later", seconds_now() + hour},
                                                             {"past", seconds_now() - hour},
                                                             {"far", UINT64_MAX}}}) {
    named_mutex each(d, name);
    each.lock();
    each.set_done_until(until);
    each.unlock();
  }
  named_mutex more(d, "more");  // takes the room of "past"
  more.lock();
  more.set_done_until(seconds_now() + hour);
  more.unlock();
  EXPECT_EQ(named_mutex(d, "past").done_until(), 0U);
  EXPECT_GT(named_mutex(d, "later").done_until(), seconds_now());
  EXPECT_EQ(named_mutex(d, "far").done_until(), UINT64_MAX);
  const auto lock = [&] { named_mutex(d, "yet another").lock(); };
  EXPECT_EQ(refusal_of(lock).first, static_cast<int>(domain_error::reason::full));
  EXPECT_TRUE(d.remove_lock("far")) << "on request it is forgotten";
  lock();
}

TEST(DomainDone, OnOneMachineNoLockIsLost) {
  const own_domain own;
  const auto d = domain::open(own.name());
  EXPECT_FALSE(d.is_of_cluster());
  EXPECT_FALSE(d.has_agent());
  EXPECT_EQ(d.cut_off_for().count(), 0);
  EXPECT_EQ(d.time_to_live().count(), 0);
  named_mutex a(d, "a");
  EXPECT_EQ(a.valid_for().count(), 0) << "it is not held";
  EXPECT_FALSE(a.is_lost());
  a.lock();
  EXPECT_EQ(a.valid_for(), std::chrono::nanoseconds::max());
  EXPECT_FALSE(a.is_lost());
  a.unlock();
}

}  // namespace
}  // namespace lockflight::test
