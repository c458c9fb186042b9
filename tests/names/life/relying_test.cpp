// Waiters that rely on a hold sleep until the kernel tells that it has ended, and do not look.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "names/life/port.hpp"
#include "tests/names/support.hpp"
#include "tests/names/ways_to_fork.hpp"
#include "tests/support/process_state.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto never = 1h;

/// While it exists, waiters of this process and of its children that rely on a hold do not look.
class no_looks {
 public:
  no_looks() { detail::relying_watcher_wakes_every_ns = std::chrono::nanoseconds(never).count(); }
  ~no_looks() { detail::relying_watcher_wakes_every_ns = 1'000'000'000; }
  no_looks(const no_looks&) = delete;
  no_looks& operator=(const no_looks&) = delete;
};

std::size_t threads_of(pid_t process) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(process) + "/task");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// How often the threads of a process have gone to sleep.
long sleeps_of(pid_t process) {
  long sum = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream status(thread.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("voluntary_ctxt_switches:")) sum += std::stol(line.substr(24));
  }
  return sum;
}

/// Returns when the process, which waits for a lock, has as many threads as it has holders to rely
/// on, and one more.
void await_threads(const child& waiter, std::size_t threads) {
  const auto until = clock::now() + 20s;
  while (threads_of(waiter.pid()) != threads && clock::now() < until) usleep(2'000);
  EXPECT_EQ(threads_of(waiter.pid()), threads);
}

struct progress {
  std::atomic<int> held, released;
  std::atomic<std::int64_t> had_at[4];
  std::atomic<bool> died[4];
};

class DomainRelying : public testing::Test {
 protected:
  /// Holds until told, and then goes on living.
  child holder(const std::string& lock = "L") {
    return child([this, lock] {
      named_shared_mutex l(domain::attach(own_.name()), lock);
      l.lock();
      ++at_.held;
      while (at_.released == 0) usleep(1'000);
      l.unlock();
      pause();
      return 0;
    });
  }
  child waiter(int number, const std::string& lock = "L", bool then_waits = false) {
    return child([=, this] {
      named_shared_mutex l(domain::attach(own_.name()), lock);
      l.lock();
      at_.died[number] = l.owner_died();
      at_.had_at[number] = clock::now().time_since_epoch().count();
      while (then_waits) pause();
      l.unlock();
      return 0;
    });
  }
  void await_held(int count = 1) const {
    while (at_.held < count) usleep(1'000);
  }
  bool await_had(int number) const {
    const auto until = clock::now() + 20s;
    while (at_.had_at[number] == 0 && clock::now() < until) usleep(1'000);
    return at_.had_at[number] != 0;
  }

  own_domain own_;
  domain in_ = domain::open(own_.name());
  progress& at_ = shared_words<progress>();
};

TEST_F(DomainRelying, AWaiterSleepsAndOnlyTheWatcherWakesOnceASecond) {
  const child held = holder();
  await_held();
  const child first = waiter(0);
  await_threads(first, 2);
  const child second = waiter(1);
  await_threads(second, 2);
  const long before = sleeps_of(first.pid());
  const long before_of_second = sleeps_of(second.pid());
  std::this_thread::sleep_for(3s);
  EXPECT_LE(sleeps_of(first.pid()) - before, 4);
  EXPECT_LE(sleeps_of(second.pid()) - before_of_second, 1);
  at_.released = 1;
  EXPECT_TRUE(await_had(0));
  EXPECT_TRUE(await_had(1));
}

TEST_F(DomainRelying, TheKernelTellsOfADeath) {
  const no_looks until_the_end;
  child held = holder();
  await_held();
  const child first = waiter(0);
  await_threads(first, 2);
  held.kill();
  EXPECT_TRUE(await_had(0));
  EXPECT_TRUE(at_.died[0]);
}

// The release passes the lock to a waiter that is stopped, of which nobody else is told.
TEST_F(DomainRelying, AReleaseToAStoppedWaiterIsSeen) {
  const no_looks until_the_end;
  const child held = holder();
  await_held();
  const child first = waiter(0);
  await_threads(first, 2);
  const child second = waiter(1);
  await_threads(second, 2);
  kill(first.pid(), SIGSTOP);
  const auto before = clock::now();
  at_.released = 1;
  EXPECT_TRUE(await_had(1));
  EXPECT_LT(clock::now() - before, 3s);
}

// Each process that waits is told by itself.
TEST_F(DomainRelying, StoppedAndKilledWaitersKeepNothingFromOthers) {
  const no_looks until_the_end;
  child held = holder();
  await_held();
  const child first = waiter(0);
  await_threads(first, 2);
  child second = waiter(1);
  await_threads(second, 2);
  const child third = waiter(2);
  await_threads(third, 2);
  kill(first.pid(), SIGSTOP);
  second.kill();
  second.wait();
  held.kill();
  EXPECT_TRUE(await_had(2));
  EXPECT_TRUE(at_.died[2]);
}

// The holder has several bytes by which it tells of the end of a hold, one after the other.
TEST_F(DomainRelying, TheThreadEndsWithEachHold) {
  const no_looks until_the_end;
  constexpr int rounds = 5;
  const child held([this] {
    named_shared_mutex l(domain::attach(own_.name()), "L");
    for (int round = 1; round <= rounds; ++round) {
      l.lock();
      at_.held = round;
      while (at_.released < round) usleep(1'000);
      l.unlock();
      while (at_.had_at[0] == 0) usleep(1'000);
      at_.had_at[0] = 0;
    }
    pause();
    return 0;
  });
  std::vector<child> all;
  for (int round = 1; round <= rounds; ++round) {
    await_held(round);
    all.push_back(child([this] {
      named_shared_mutex l(domain::attach(own_.name()), "L");
      l.lock();
      l.unlock();
      at_.had_at[0] = 1;
      pause();
      return 0;
    }));
    await_threads(all.back(), 2);
    at_.released = round;
    await_threads(all.back(), 1);
  }
}

// Readers that wait behind a writer would come in if that writer died, so that they rely on no
// reader.
TEST_F(DomainRelying, AWriterReliesOnAReader) {
  const no_looks until_the_end;
  child reader([&] {
    named_shared_mutex l(domain::attach(own_.name()), "L");
    l.lock_shared();
    ++at_.held;
    pause();
    return 0;
  });
  await_held();
  const child first = waiter(0);
  await_threads(first, 2);
  const child second([&] {
    named_shared_mutex l(domain::attach(own_.name()), "L");
    l.lock_shared();
    at_.had_at[1] = 1;
    pause();
    return 0;
  });
  await_waiters(in_, 2);
  first.kill();
  EXPECT_TRUE(await_had(1)) << "a reader waits for a dead writer as long as another one reads";
  reader.kill();
}

TEST_F(DomainRelying, ManyThreadsOfAProcessWaitWithOneMore) {
  const child held = holder();
  await_held();
  constexpr int count = 20;
  const child waiting([&] {
    std::vector<std::thread> all;
    for (int i = 0; i < count; ++i)
      all.emplace_back([&] {
        named_mutex l(domain::attach(own_.name()), "L", {.kind = default_kind});
        l.lock();
        l.unlock();
      });
    for (auto& each : all) each.join();
    at_.had_at[0] = 1;
    return 0;
  });
  await_threads(waiting, 1 + count + 1);
  std::this_thread::sleep_for(1s);  // until all rely
  const long before = sleeps_of(waiting.pid());
  std::this_thread::sleep_for(1s);
  EXPECT_LT(sleeps_of(waiting.pid()) - before, count / 2);
  at_.released = 1;
  EXPECT_TRUE(await_had(0));
}

// A thread that ends as the holder is told of as well, within its process and outside of it. The
// handles outlive the thread.
TEST_F(DomainRelying, AThreadThatEndsAsTheHolderIsSeen) {
  const no_looks until_the_end;
  const child inside([&] {
    std::thread holds([&] {
      (new named_shared_mutex(domain::attach(own_.name()), "L"))->lock();
      (new named_shared_mutex(domain::attach(own_.name()), "M"))->lock();
      ++at_.held;
      while (at_.released == 0) usleep(1'000);
    });
    while (at_.held == 0) usleep(1'000);
    named_shared_mutex l(domain::attach(own_.name()), "L");
    l.lock();
    at_.died[0] = l.owner_died();
    at_.had_at[0] = 1;
    holds.join();
    return 0;
  });
  await_held();
  const child outside = waiter(1, "M");
  await_threads(outside, 2);
  await_threads(inside, 3);
  at_.released = 1;
  EXPECT_TRUE(await_had(0));
  EXPECT_TRUE(at_.died[0]);
  EXPECT_TRUE(await_had(1));
  EXPECT_TRUE(at_.died[1]);
}

TEST_F(DomainRelying, AHolderThatBecomesAnotherProgramIsSeen) {
  const no_looks until_the_end;
  const child held([&] {
    named_shared_mutex l(domain::attach(own_.name()), "L");
    l.lock();
    ++at_.held;
    while (at_.released == 0) usleep(1'000);
    execl("/bin/sleep", "sleep", "1000", nullptr);
    return 1;
  });
  await_held();
  const child first = waiter(0);
  await_threads(first, 2);
  at_.released = 1;
  EXPECT_TRUE(await_had(0));
  EXPECT_TRUE(at_.died[0]);
}

// The byte of the hold is free then, and says nothing any more: the waiter looks by itself.
TEST_F(DomainRelying, AHolderThatClosesItsDescriptorsIsWatchedByLooks) {
  child held([&] {
    named_shared_mutex l(domain::attach(own_.name()), "L");
    l.lock();
    ++at_.held;
    while (at_.released == 0) usleep(1'000);
    for (int fd = 3; fd < 1'000; ++fd) close(fd);
    ++at_.held;
    pause();
    return 0;
  });
  await_held();
  const child first = waiter(0);
  await_threads(first, 2);
  at_.released = 1;
  await_held(2);
  await_threads(first, 1);
  const child second = waiter(1);
  await_waiters(in_, 2);
  std::this_thread::sleep_for(200ms);
  const long before = sleeps_of(first.pid()) + sleeps_of(second.pid());
  std::this_thread::sleep_for(1s);
  const long looks = sleeps_of(first.pid()) + sleeps_of(second.pid()) - before;
  EXPECT_GT(looks, 5);
  EXPECT_LT(looks, 80) << "one of them looks 25 times a second";
  EXPECT_EQ(threads_of(first.pid()), 1u);
  EXPECT_EQ(at_.had_at[0], 0);
  held.kill();
  EXPECT_TRUE(await_had(0));
  EXPECT_TRUE(at_.died[0]);
}

// A process that waits for many locks at once has 16 such threads at most.
TEST_F(DomainRelying, WaitsForManyHoldersShareFewThreads) {
  constexpr int locks = 20;
  std::vector<child> holders;
  for (int i = 0; i < locks; ++i) {
    holders.push_back(holder("L" + std::to_string(i)));
    await_held(i + 1);
  }
  const child waiting([&] {
    std::vector<std::thread> all;
    for (int i = 0; i < locks; ++i)
      all.emplace_back([&, i] {
        named_shared_mutex l(domain::attach(own_.name()), "L" + std::to_string(i));
        l.lock();
        l.unlock();
      });
    for (auto& each : all) each.join();
    at_.had_at[0] = 1;
    return 0;
  });
  await_threads(waiting, 1 + locks + 16);
  for (const child& each : holders) each.kill();
  EXPECT_TRUE(await_had(0));
}

// A filter that refuses new threads, as seccomp profiles do.
bool refuses_threads() {
  constexpr std::uint32_t refused = SECCOMP_RET_ERRNO | EAGAIN;
  constexpr std::uint32_t unknown = SECCOMP_RET_ERRNO | ENOSYS;  // the C library uses clone then
  const auto at_number = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  std::vector<sock_filter> code{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at_number),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
                                BPF_STMT(BPF_RET | BPF_K, unknown),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
                                BPF_STMT(BPF_RET | BPF_K, refused),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(DomainRelying, AWaiterWithoutThreadsLooksByItself) {
  const no_looks until_the_end;  // of those that rely, of which there are none
  child held = holder();
  await_held();
  child first([&] {
    if (!refuses_threads()) return not_allowed_here;
    named_shared_mutex l(domain::attach(own_.name()), "L");
    l.lock();
    at_.died[0] = l.owner_died();
    at_.had_at[0] = 1;
    l.unlock();
    return 0;
  });
  const auto until = clock::now() + 10s;
  while (state_of(first.pid()) != 'Z' && in_.locks().at(0).users.size() < 2 && clock::now() < until)
    usleep(1'000);
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(threads_of(first.pid()), 1u);
  held.kill();
  const int code = first.wait();
  if (code == not_allowed_here) GTEST_SKIP() << "no filter of system calls can be set here";
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(at_.died[0]);
}

TEST_F(DomainRelying, AWaiterOfAUserWithTooManyProcessesLooksByItself) {
  if (!is_root()) GTEST_SKIP() << "only root becomes another user";
  const own_domain shared(".g");
  auto d = domain::open(shared.name(), {.mode = 0660, .group = "61003"});
  child held([&] {
    named_shared_mutex l(domain::open(shared.name(), {.mode = 0660, .group = "61003"}), "L");
    l.lock();
    ++at_.held;
    pause();
    return 0;
  });
  await_held();
  child first([&] {
    become(61003, 61003);
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_NPROC, &none) != 0) return not_allowed_here;
    named_shared_mutex l(domain::open(shared.name(), {.mode = 0660, .group = "61003"}), "L");
    l.lock();
    at_.died[0] = l.owner_died();
    at_.had_at[0] = 1;
    l.unlock();
    return 0;
  });
  await_waiters(d, 1);
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(threads_of(first.pid()), 1u);
  held.kill();
  EXPECT_EQ(first.wait(), 0);
  EXPECT_TRUE(at_.died[0]);
  EXPECT_TRUE(domain::remove(shared.name(), true, 0660, "61003"));  // not the user's own one
}

// The child has none of its parent's threads, and relies by itself.
TEST_F(DomainRelying, AChildOfAWaitingProcessReliesByItself) {
  const no_looks until_the_end;
  for (const way_to_fork& way : ways_to_fork) {
    SCOPED_TRACE(way.name);
    at_.held = at_.released = 0;
    at_.had_at[0] = at_.had_at[1] = 0;
    child held = holder();
    await_held();
    auto& grandchild = shared_words<std::atomic<pid_t>>();
    const child parent([&] {
      std::thread waits([&] {
        named_shared_mutex l(domain::attach(own_.name()), "L");
        l.lock();
        at_.had_at[0] = 1;
        l.unlock();
      });
      while (threads_of(getpid()) != 3) usleep(2'000);
      const pid_t made = way.fork();
      if (made < 0) return grandchild = -1, 1;
      if (made == 0) {
        named_shared_mutex l(domain::attach(own_.name()), "L");
        l.lock();
        at_.had_at[1] = 1;
        l.unlock();
        _exit(0);
      }
      grandchild = made;
      waits.join();
      waitpid(made, nullptr, 0);
      pause();
      return 0;
    });
    while (grandchild == 0) usleep(1'000);
    if (grandchild < 0) continue;
    const auto until = clock::now() + 10s;
    while (threads_of(grandchild) != 2 && clock::now() < until) usleep(2'000);
    EXPECT_EQ(threads_of(grandchild), 2u);
    held.kill();
    EXPECT_TRUE(await_had(0));
    EXPECT_TRUE(await_had(1));
    end_made(grandchild);
  }
}

// The watcher sees within a second that the file is gone, and wakes the others.
TEST_F(DomainRelying, WaitersSeeThatTheFileIsGone) {
  const child held = holder();
  await_held();
  std::vector<child> waiting;
  for (int i = 0; i < 3; ++i) {
    waiting.push_back(waiter(i));
    await_threads(waiting.back(), 2);
  }
  const auto before = clock::now();
  ASSERT_EQ(unlink(own_.path().c_str()), 0);
  const auto next = domain::open(own_.name());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(await_had(i));
  EXPECT_LT(clock::now() - before, 5s);
}

TEST_F(DomainRelying, AWaiterGoesOnInTheNextDomain) {
  const no_looks until_the_end;
  const child held = holder();
  await_held();
  const child first = waiter(0);
  await_threads(first, 2);
  EXPECT_TRUE(domain::remove(own_.name(), true));
  const auto next = domain::open(own_.name());
  EXPECT_TRUE(await_had(0));
}

}  // namespace
}  // namespace lockflight::test
