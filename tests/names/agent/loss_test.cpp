// named_handle::loss(): on one machine, and in a cluster's domain whose agent is this test.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>

#include "names/agent/host/domain_words.hpp"
#include "names/locks/loss.hpp"
#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using clock = std::chrono::steady_clock;

/// Notes when a hold was told of its loss.
class told {
 public:
  explicit told(named_handle& of)
      : token_(of.loss()), at_loss_(token_, [this] {
          const std::scoped_lock hold(mutex_);
          at_ = clock::now();
          ++times_;
          changed_.notify_all();
        }) {}

  /// True if it was told within that time.
  bool within(milliseconds at_most) {
    std::unique_lock hold(mutex_);
    return changed_.wait_for(hold, at_most, [this] { return times_ > 0; });
  }
  clock::time_point at() {
    const std::scoped_lock hold(mutex_);
    return at_;
  }
  int times() {
    const std::scoped_lock hold(mutex_);
    return times_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  clock::time_point at_;
  int times_ = 0;
  std::stop_token token_;
  std::stop_callback<std::function<void()>> at_loss_;
};

/// True if the kernel tells this process of changes of that file.
bool is_watched(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return false;
  std::ostringstream wanted;
  wanted << " ino:" << std::hex << file.st_ino << ' ';
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream lines(each.path());
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("inotify wd:") && line.find(wanted.str()) != std::string::npos)
        return true;
  }
  return false;
}

// ---- one machine ----

TEST(Loss, AHoldThatIsReleasedIsNotTold) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  EXPECT_EQ(refusal_of([&] { (void)a.loss(); }).first,
            static_cast<int>(domain_error::reason::not_held));
  a.lock();
  const std::stop_token first = a.loss();
  EXPECT_EQ(first, a.loss()) << "one token for a hold";
  a.unlock();
  a.lock();
  const std::stop_token second = a.loss();
  EXPECT_FALSE(first == second);
  domain::remove(own.name(), true);
  while (!second.stop_requested()) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(first.stop_requested());
  EXPECT_TRUE(a.is_lost());
  a.unlock();
}

TEST(Loss, TheRemovalOfADomainIsToldAtOnce) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  named_semaphore units(d, "units", 3);
  named_locks both(d, {"b", "c"});
  a.lock();
  units.acquire();
  both.lock();
  told of_a(a);
  told of_units(units);
  told of_both(both);
  EXPECT_FALSE(of_a.within(50ms)) << "nothing is lost yet";
  EXPECT_TRUE(is_watched(own.path()));
  unlink(own.path().c_str());
  EXPECT_TRUE(of_a.within(2s) && of_units.within(2s) && of_both.within(2s));
  EXPECT_EQ(a.valid_for().count(), 0);
  EXPECT_THROW(a.release(if_lost::throws), lost_error);
  EXPECT_THROW(units.release(if_lost::throws), lost_error);
  EXPECT_THROW(both.release(if_lost::throws), lost_error);
  EXPECT_FALSE(a.is_held() || units.is_held() || both.is_held());
  EXPECT_EQ(of_a.times(), 1);
  named_mutex present(domain::open(own.name()), "a");
  present.lock();
  EXPECT_FALSE(present.is_lost());
  present.release(if_lost::throws);
}

TEST(Loss, AFileThatIsOverwrittenIsTold) {
  const own_domain own;
  const auto d = domain::open(own.name());
  auto a = std::make_optional<named_mutex>(d, "a");
  a->lock();
  told of_a(*a);
  std::fstream(own.path(), std::ios::in | std::ios::out) << "something else than a domain";
  EXPECT_TRUE(of_a.within(2s));
  unlink(own.path().c_str());
}

TEST(Loss, OfAFileThatAnotherOneReplacesIsTold) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  told of_a(a);
  const std::string other = own.path() + ".other";
  std::ofstream(other) << "another file";
  rename(other.c_str(), own.path().c_str());
  EXPECT_TRUE(of_a.within(2s));
  unlink(own.path().c_str());
}

TEST(Loss, AFileThatIsMovedAwayIsToldWhenAnotherOneComes) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  told of_a(a);
  const std::string away = own.path() + ".away";
  rename(own.path().c_str(), away.c_str());
  EXPECT_FALSE(of_a.within(50ms)) << "nobody holds the lock beside it";
  child one([&] {
    named_mutex same(domain::open(own.name()), "a");
    same.lock();
    return 0;
  });
  EXPECT_EQ(one.wait(), 0);
  EXPECT_TRUE(of_a.within(2s));
  unlink(away.c_str());
}

TEST(Loss, AnOverwrittenFileIsToldByARelease) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  std::fstream(own.path(), std::ios::in | std::ios::out) << "something else than a domain";
  EXPECT_THROW(a.release(if_lost::throws), lost_error);
  unlink(own.path().c_str());
}

TEST(Loss, DomainsThatAreOpenedAndClosedLeaveNothing) {
  const own_domain own;
  const auto hold_once = [&] {
    const auto d = domain::open(own.name());
    named_mutex a(d, "a");
    a.lock();
    static_cast<void>(a.loss());
    a.unlock();
  };
  const auto resident_kib = [] {
    std::ifstream lines("/proc/self/status");
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
    return 0L;
  };
  for (int i = 0; i < 20; ++i) std::thread(hold_once).join();
  const long before = resident_kib();
  for (int i = 0; i < 200; ++i) std::thread(hold_once).join();
  EXPECT_LT(resident_kib() - before, 5'000);
}

TEST(Loss, AThreadCanWaitForIt) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  std::mutex mutex;
  std::condition_variable_any never;
  const std::stop_token token = a.loss();
  std::thread remover([&] { domain::remove(own.name(), true); });
  std::unique_lock hold(mutex);
  EXPECT_FALSE(never.wait_for(hold, token, 5s, [] { return false; }));
  EXPECT_TRUE(token.stop_requested());
  remover.join();
}

TEST(Loss, NoFunctionBeginsAfterTheRelease) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  named_mutex b(d, "b");
  a.lock();
  b.lock();
  std::atomic<bool> runs{false};
  std::atomic<bool> has_ended{false};
  std::atomic<int> later{0};
  std::optional<std::stop_callback<std::function<void()>>> slow;
  slow.emplace(a.loss(), [&] {
    runs = true;
    std::this_thread::sleep_for(200ms);
    has_ended = true;
  });
  const std::stop_callback<std::function<void()>> of_b(b.loss(), [&] { ++later; });
  domain::remove(own.name(), true);
  while (!runs) std::this_thread::sleep_for(1ms);
  const int before = later;  // the one of the two that is told first is not said
  b.unlock();
  EXPECT_EQ(later, before);
  a.unlock();
  EXPECT_TRUE(has_ended) << "the release waits for a function that runs";
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(later, before);
}

TEST(Loss, AFileThatIsMadeShorterIsTold) {
  const own_domain own;
  child one([&] {
    const auto d = domain::open(own.name());
    named_mutex a(d, "a");
    a.lock();
    told of_a(a);
    if (truncate(own.path().c_str(), 0) != 0) return 1;
    _exit(of_a.within(2s) ? 0 : 2);  // a release would use the memory that is gone
    return 0;
  });
  EXPECT_EQ(one.wait(), 0);
  unlink(own.path().c_str());
}

TEST(Loss, ADomainThatIsOpenedAgainIsWatchedAgain) {
  const own_domain own;
  const own_domain other("other");
  const auto hold_once = [&] {
    const auto d = domain::open(own.name());
    named_mutex a(d, "a");
    a.lock();
    told of_a(a);
    a.unlock();
  };
  hold_once();
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  told of_a(a);
  {  // has the thread forget what is not used
    const auto e = domain::open(other.name());
    named_mutex b(e, "b");
    b.lock();
    told of_b(b);
    domain::remove(other.name(), true);
    ASSERT_TRUE(of_b.within(2s));
    b.unlock();
  }
  EXPECT_TRUE(is_watched(own.path()));
  domain::remove(own.name(), true);
  EXPECT_TRUE(of_a.within(2s));
}

TEST(Loss, AProgramThatClosesAllDescriptorsIsTold) {
  const own_domain own;
  const own_domain other("other");
  child one([&] {
    const auto d = domain::open(own.name());
    const auto e = domain::open(other.name());
    named_mutex a(d, "a");
    named_mutex b(e, "b");
    a.lock();
    told of_a(a);
    closefrom(3);
    const int ours = open("/dev/null", O_RDWR);  // under a number that the library had
    domain::remove(own.name(), true);
    if (!of_a.within(2s)) return 1;
    b.lock();
    told of_b(b);
    domain::remove(other.name(), true);
    if (!of_b.within(2s)) return 2;
    return fcntl(ours, F_GETFD) >= 0 ? 0 : 3;
  });
  EXPECT_EQ(one.wait(), 0);
}

// A child of a fork has no thread that watches, and begins with its own first hold.
TEST(Loss, AChildWatchesItsOwnHolds) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex a(d, "a");
  a.lock();
  told of_a(a);
  child one([&] {
    if (refusal_of([&] { (void)a.loss(); }).first !=
        static_cast<int>(domain_error::reason::wrong_thread))
      return 1;
    named_mutex b(d, "b");
    b.lock();
    told of_b(b);
    domain::remove(own.name(), true);
    return of_b.within(2s) ? 0 : 2;
  });
  EXPECT_EQ(one.wait(), 0);
  EXPECT_TRUE(of_a.within(2s));
}

// ---- a cluster's domain ----

constexpr milliseconds time_to_live = 2s;

/// The agent's part: the words that it writes for its clients.
class own_agent {
 public:
  own_agent() : file_(detail::domain_file::open_as_agent(name(), {})) {
    if (!file_->lock_as_agent()) throw std::runtime_error("another agent has the file");
    words_.emplace(file_);
    words_->begin_with_own_clock(std::chrono::microseconds(time_to_live).count());
    file_->cluster().time_to_live = std::chrono::microseconds(time_to_live).count();
    words_->set_incarnation(1);
    renew(time_to_live);
  }
  ~own_agent() {
    words_.reset();
    domain::remove(name(), true);
  }
  own_agent(const own_agent&) = delete;
  own_agent& operator=(const own_agent&) = delete;

  static std::string name() { return "etcd:loss." + std::to_string(getpid()); }
  void renew(nanoseconds ahead) {
    words_->set_deadline(detail::boot_time() + ahead.count() / 1'000);
  }
  void give(const std::string& lock) {
    const auto had = words_->ownership_of(lock);
    words_->swap_ownership(lock, had, {mode::exclusive, mode::none, words_->incarnation()});
  }
  cluster::domain_words& words() { return *words_; }

 private:
  std::shared_ptr<detail::domain_file> file_;
  std::optional<cluster::domain_words> words_;
};

TEST(LossOfACluster, IsToldATenthOfATimeToLiveBeforeTheDeadline) {
  own_agent agent;
  agent.give("a");
  named_mutex a(domain::attach(agent.name()), "a");
  a.lock();
  told of_a(a);
  const auto begun = clock::now();
  std::this_thread::sleep_for(300ms);
  agent.renew(1s);  // sooner than it was, as at the end of a time to live
  const auto deadline = clock::now() + 1s;
  EXPECT_FALSE(of_a.within(500ms));
  EXPECT_GT(a.valid_for().count(), 0);
  ASSERT_TRUE(of_a.within(5s));
  EXPECT_LE(of_a.at(), deadline - time_to_live / 20) << "0.1 before another host can hold";
  EXPECT_GE(of_a.at(), begun + 300ms + 1s - time_to_live / 10 - 5ms);
  agent.renew(time_to_live);
  EXPECT_EQ(a.valid_for().count(), 0) << "it does not come back";
  EXPECT_TRUE(a.is_lost());
  EXPECT_THROW(a.release(if_lost::throws), lost_error);
  a.lock();
  EXPECT_TRUE(a.owner_died()) << "the section was given up in the middle";
  EXPECT_GT(a.valid_for().count(), 0);
  a.mark_consistent();
  a.release(if_lost::throws);
  a.lock();
  EXPECT_FALSE(a.owner_died());
  a.unlock();
}

TEST(LossOfACluster, AHolderThatWasToldPutsNothingRight) {
  own_agent agent;
  agent.give("a");
  named_mutex a(domain::attach(agent.name()), "a");
  for (int hold = 0; hold < 2; ++hold) {
    a.lock();
    EXPECT_EQ(a.owner_died(), hold > 0);
    told of_a(a);
    agent.renew(time_to_live / 20);
    ASSERT_TRUE(of_a.within(2s));
    agent.renew(time_to_live);
    a.mark_consistent();
    a.unlock();  // leaves what a death leaves
  }
  a.lock();
  EXPECT_TRUE(a.owner_died());
  a.unlock();
}

TEST(LossOfACluster, NoHoldBeginsThatCouldNotBeToldInTime) {
  own_agent agent;
  agent.give("a");
  named_mutex a(domain::attach(agent.name()), "a");
  agent.renew(time_to_live / 11);
  EXPECT_FALSE(a.try_lock_for(50ms));
  agent.renew(time_to_live);
  EXPECT_TRUE(a.try_lock_for(2s));
  a.unlock();
}

TEST(LossOfACluster, TheEarlierOneOfAnEndAndTheDeadlineIsTold) {
  own_agent agent;
  agent.give("a");
  named_mutex a(domain::attach(agent.name()), "a");
  a.lock();
  a.end_after(100ms);
  told of_end(a);
  EXPECT_LE(a.valid_for(), 100ms);
  ASSERT_TRUE(of_end.within(time_to_live / 2));
  EXPECT_EQ(a.ending().why, end_reason::limit);
  EXPECT_THROW(a.release(if_lost::throws), lost_error);
  agent.renew(time_to_live);
  a.lock();
  EXPECT_TRUE(a.owner_died());
  a.end_after(1h);
  told of_deadline(a);
  EXPECT_LE(a.valid_for(), time_to_live);
  agent.renew(time_to_live / 20);
  ASSERT_TRUE(of_deadline.within(2s));
  a.unlock();
}

TEST(LossOfACluster, AnEndIsNotPutOffByTheAgent) {
  own_agent agent;
  agent.give("a");
  named_mutex a(domain::attach(agent.name()), "a");
  a.lock();
  a.end_after(50ms);
  const auto until = clock::now() + 100ms;
  while (clock::now() < until) agent.renew(time_to_live);
  EXPECT_EQ(a.valid_for().count(), 0);
  EXPECT_GT(named_control(a).alone_for().count(), 0) << "nobody else can hold yet";
  a.unlock();
}

TEST(LossOfACluster, IsNotToldWhileTheAgentRenews) {
  own_agent agent;
  agent.give("a");
  named_mutex a(domain::attach(agent.name()), "a");
  a.lock();
  told of_a(a);
  agent.renew(400ms);
  const auto end = clock::now() + 1s;
  while (clock::now() < end) {
    agent.renew(time_to_live);
    ASSERT_FALSE(of_a.within(20ms));
  }
  a.release(if_lost::throws);
}

TEST(LossOfACluster, IsToldAtOnceWhenTheHostIsAnotherMember) {
  own_agent agent;
  agent.give("a");
  named_mutex a(domain::attach(agent.name()), "a");
  a.lock();
  told of_a(a);
  agent.words().set_deadline(0);  // as an agent begins that
  const auto before = clock::now();
  ASSERT_TRUE(of_a.within(time_to_live * 2));
  EXPECT_LT(of_a.at() - before, time_to_live / 4) << "without waiting for the timer";
  agent.words().set_incarnation(2);
  agent.renew(time_to_live);
  EXPECT_TRUE(a.is_lost());
  a.unlock();
}

TEST(LossOfACluster, ThatWasSeenOnceDoesNotEndAgain) {
  own_agent agent;
  agent.give("a");
  named_mutex a(domain::attach(agent.name()), "a");
  a.lock();
  agent.renew(0s);
  EXPECT_EQ(a.valid_for().count(), 0);
  agent.renew(time_to_live);
  EXPECT_EQ(a.valid_for().count(), 0);
  a.unlock();
  a.lock();
  EXPECT_GT(a.valid_for().count(), 0);
  a.unlock();
}

TEST(LossOfACluster, IsToldToAHoldThatBeginsTooLate) {
  own_agent agent;
  agent.give("a");
  named_mutex a(domain::attach(agent.name()), "a");
  a.lock();
  agent.words().set_deadline(0);
  agent.words().set_incarnation(2);
  agent.renew(time_to_live);
  const std::stop_token token = a.loss();
  EXPECT_TRUE(token.stop_requested()) << "the hold is of the incarnation before";
  a.unlock();
}

}  // namespace
}  // namespace lockflight::test
