// Participants that are stopped, and do not die: nobody waits for them but for a holder.
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/names/support.hpp"
#include "tests/support/process_state.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// A child that does this with a lock, and says how far it has come.
class actor {
 public:
  enum step : int { begins, asks, holds, done };

  actor(const std::string& domain_name, const std::string& lock, bool then_wait,
        const char* kind = default_kind)
      : in_(domain::attach(domain_name)), at_(shared_words<std::atomic<int>>()), child_([&, this] {
          named_lock mine(domain::attach(domain_name), lock, {.kind = kind});
          at_ = asks;
          mine.lock();
          at_ = holds;
          while (then_wait && at_ != done) usleep(1000);
          mine.unlock();
          at_ = done;
          return 0;
        }) {}

  [[nodiscard]] int at() const { return at_; }
  void await(int step) const {
    while (at_ < step) usleep(500);
  }
  /// Until it sleeps in the lock.
  void await_waiting() const {
    await(asks);
    while (!waits() || state_of(child_.pid()) != 'S') usleep(500);
  }
  void stop() const { kill(child_.pid(), SIGSTOP); }
  void go_on() const { kill(child_.pid(), SIGCONT); }
  void release() { at_ = done; }
  child& process() { return child_; }

 private:
  /// True if the domain lists it as a waiter.
  [[nodiscard]] bool waits() const {
    for (const domain_lock& lock : in_.locks())
      for (const lock_user& use : lock.users)
        if (use.pid == child_.pid() && use.held == mode::none) return true;
    return false;
  }

  domain in_;
  std::atomic<int>& at_;
  child child_;
};

class DomainStops : public testing::TestWithParam<const char*> {
 protected:
  own_domain own_;
  domain in_ = domain::open(own_.name());
};

TEST_P(DomainStops, AStoppedWaiterAndADeathBlockNobody) {
  actor holder(own_.name(), "L", true, GetParam());
  holder.await(actor::holds);
  actor waiter(own_.name(), "L", false, GetParam());
  waiter.await_waiting();
  waiter.stop();
  holder.process().kill();
  holder.process().wait();

  const auto before = clock::now();
  named_mutex other(in_, "other");
  EXPECT_TRUE(other.try_lock());
  other.unlock();
  EXPECT_LT(clock::now() - before, 200ms);
  named_lock l(in_, "L", {.kind = GetParam()});
  l.lock();
  EXPECT_LT(clock::now() - before, 1200ms);
  EXPECT_TRUE(l.owner_died());
  l.mark_consistent();
  l.unlock();
  waiter.go_on();
  EXPECT_EQ(waiter.process().wait(), 0) << "it gets the lock, too";
  l.lock();
  EXPECT_FALSE(l.owner_died());
  l.unlock();
}

TEST_P(DomainStops, AGrantThatIsNotTakenUpIsWithdrawn) {
  actor holder(own_.name(), "L", true, GetParam());
  holder.await(actor::holds);
  actor stopped(own_.name(), "L", true, GetParam());
  stopped.await_waiting();
  actor third(own_.name(), "L", true, GetParam());
  third.await_waiting();
  stopped.stop();
  const auto before = clock::now();
  holder.release();
  third.await(actor::holds);
  EXPECT_LT(clock::now() - before, 2s);
  stopped.go_on();
  usleep(100'000);
  EXPECT_EQ(stopped.at(), actor::asks) << "two hold";
  third.release();
  stopped.await(actor::holds);
  stopped.release();
  EXPECT_EQ(stopped.process().wait(), 0);
  EXPECT_EQ(third.process().wait(), 0);
  EXPECT_EQ(holder.process().wait(), 0);
  named_lock l(in_, "L", {.kind = GetParam()});
  l.lock();
  EXPECT_FALSE(l.owner_died()) << "nobody died";
  l.unlock();
}

TEST_P(DomainStops, AStoppedHolderKeepsTheLock) {
  actor holder(own_.name(), "L", true, GetParam());
  holder.await(actor::holds);
  holder.stop();
  actor waiter(own_.name(), "L", false, GetParam());
  waiter.await_waiting();
  usleep(1'500'000);
  EXPECT_EQ(waiter.at(), actor::asks);
  const auto locks = in_.locks();
  ASSERT_EQ(locks.size(), 1u);
  int stopped = 0;
  for (const auto& use : locks[0].users)
    if (use.held == mode::exclusive) stopped += use.stopped ? 1 : 0;
  EXPECT_EQ(stopped, 1);
  holder.go_on();
  holder.release();
  EXPECT_EQ(waiter.process().wait(), 0);
}

INSTANTIATE_TEST_SUITE_P(Each, DomainStops,
                         testing::Values("flight-rw", "flight", "d-mcs", "mcs-rw-fair"));

TEST(DomainStopsAll, AttemptsReturnWhileAllOthersAreStopped) {
  const own_domain own;
  const auto d = domain::open(own.name());
  actor holder(own.name(), "L", true);
  holder.await(actor::holds);
  actor first(own.name(), "L", false);
  actor second(own.name(), "L", false);
  first.await_waiting();
  second.await_waiting();
  for (const actor* each : {&holder, &first, &second}) each->stop();
  named_shared_mutex l(d, "L");
  const auto before = clock::now();
  EXPECT_FALSE(l.try_lock());
  EXPECT_FALSE(l.try_lock_shared());
  EXPECT_FALSE(l.try_lock_for(50ms));
  EXPECT_FALSE(l.try_lock_shared_for(50ms));
  EXPECT_LT(clock::now() - before, 500ms);
  named_mutex fresh(d, "new");
  EXPECT_TRUE(fresh.try_lock());
  fresh.unlock();
  for (const actor* each : {&holder, &first, &second}) each->go_on();
}

// Each stopped waiter that was granted the lock keeps one of its three instances. When all are kept
// the others wait, and go on when those are dead, whose deaths they have to find out themselves.
TEST(DomainStopsAll, InstancesOfStoppedWaitersComeBackWhenTheyDie) {
  const own_domain own;
  const auto d = domain::open(own.name());
  std::vector<std::unique_ptr<actor>> stopped;
  for (int i = 0; i < 3; ++i) {
    actor holder(own.name(), "L", true, "d-mcs");
    holder.await(actor::holds);
    stopped.push_back(std::make_unique<actor>(own.name(), "L", false, "d-mcs"));
    stopped.back()->await_waiting();
    stopped.back()->stop();
    actor next(own.name(), "L", false, "d-mcs");
    next.await_waiting();
    holder.release();
    if (i == 2) {
      usleep(1'000'000);
      EXPECT_EQ(next.at(), actor::asks) << "there are more instances than this test expects";
      for (const auto& each : stopped) each->process().kill();
    }
    EXPECT_EQ(next.process().wait(), 0);
  }
}

// One waiter examines whether the others live, and another one takes that over if it stops.
TEST(DomainStopsAll, AStoppedWatcherIsReplaced) {
  const own_domain own;
  const auto d = domain::open(own.name());
  for (int round = 0; round < 3; ++round) {
    actor holder(own.name(), "L", true);
    holder.await(actor::holds);
    actor first(own.name(), "L", false);
    first.await_waiting();
    actor second(own.name(), "L", false);
    second.await_waiting();
    first.stop();  // it has the watch, as the first that came
    usleep(1'400'000);
    holder.process().kill();
    const auto before = clock::now();
    second.await(actor::done);
    EXPECT_LT(clock::now() - before, 300ms) << "nobody had the watch";
    first.go_on();
    EXPECT_EQ(first.process().wait(), 0);
  }
}

TEST(DomainStopsAll, AWaitIsInterruptedAtOnce) {
  const own_domain own;
  const auto d = domain::open(own.name());
  for (const char* const kind : {"flight-rw", "flight", "d-mcs", "spin"}) {
    SCOPED_TRACE(kind);
    actor holder(own.name(), kind, true, kind);
    holder.await(actor::holds);
    named_lock l(d, kind, {.kind = kind});
    std::atomic<bool> flag{false};
    named_control(l).interrupt_with([&] { return flag.load(); });
    std::thread later([&] {
      std::this_thread::sleep_for(50ms);
      flag = true;
    });
    const auto before = clock::now();
    EXPECT_REFUSED(interrupted, kind, l.lock());
    EXPECT_LT(clock::now() - before, 1500ms);
    EXPECT_FALSE(l.is_held());
    later.join();
    flag = false;
    EXPECT_REFUSED(system, "mine", {
      named_control(l).interrupt_with(
          []() -> bool { throw domain_error(domain_error::reason::system, "mine"); });
      l.lock();
    });
    named_control(l).interrupt_with(nullptr);
    holder.release();
    l.lock();
    l.unlock();
    EXPECT_EQ(holder.process().wait(), 0);
  }
}

// A waiter waits for two turns of all at most. Turns are counted and not timed, because the threads
// get fewer of them while others use the processors.
TEST(DomainStopsAll, NobodyIsOvertakenForLong) {
  const own_domain own;
  const auto d = domain::open(own.name());
  constexpr int count = 8;
  constexpr auto hold = 5ms;
  std::atomic<int> acquired{0};
  std::atomic<int> most{0};
  const auto until = clock::now() + 2s;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] {
      named_shared_mutex l(d, "L");
      while (clock::now() < until) {
        const int asked = acquired.load();
        l.lock();
        const int overtaken = acquired.fetch_add(1) - asked;
        for (int now = most.load();
             overtaken > now && !most.compare_exchange_weak(now, overtaken);) {
        }
        std::this_thread::sleep_for(hold);
        l.unlock();
      }
    });
  for (auto& each : threads) each.join();
  const double turns = static_cast<double>(most) / count;
  printf("the longest wait was %.1f turns\n", turns);
  EXPECT_GT(turns, 0.5) << "they took no turns";
  EXPECT_LT(turns, 4) << "twice what is promised: a waiter may not run when its turn comes";
}

}  // namespace
}  // namespace lockflight::test
