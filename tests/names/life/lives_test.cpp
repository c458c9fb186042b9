// Who lives, and what decides it: a test for each cell of the table in names/life/slots.cpp.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstddef>
#include <fstream>
#include <thread>

#include "names/life/liveness.hpp"
#include "tests/names/support.hpp"
#include "tests/names/ways_to_fork.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

/// A process that holds "a" exclusively until it is killed, after it has done that.
class living_holder {
 public:
  explicit living_holder(
      const own_domain& in, const std::function<void()>& then = [] {})
      : is_ready_(shared_words<std::atomic<bool>>()), process_([&, this] {
          named_mutex theirs(domain::attach(in.name()), "a");
          theirs.lock();
          then();
          is_ready_ = true;
          while (true) pause();
          return 0;
        }) {
    while (!is_ready_) usleep(500);
  }
  [[nodiscard]] child& process() { return process_; }
  void end() {
    process_.kill();
    EXPECT_EQ(process_.wait(), 1000 + SIGKILL);
  }

 private:
  std::atomic<bool>& is_ready_;
  child process_;
};

/// Looks thoroughly whether the owners of slots live, and takes the lock if it is free by then.
bool is_free(const domain& d, std::chrono::milliseconds within = 50ms) {
  static_cast<void>(d.participants());
  named_mutex m(d, "a");
  if (!m.try_lock_for(within)) return false;
  EXPECT_TRUE(m.owner_died());
  m.mark_consistent();
  m.unlock();
  return true;
}
/// The same again and again, for long: what is found dead is repaired when the machine has time.
bool comes_free(const domain& d) {
  for (int tries = 0; tries < 50; ++tries)
    if (is_free(d, 100ms)) return true;
  return false;
}

/// Ends the calling thread without a destructor.
void end_without_leaving() { syscall(SYS_exit, 0); }

/// The exit codes of a child that looks whether the lock of a living holder is free.
enum : int { lives = 0, taken_for_dead = 1 };
int verdict_on_a_living(const domain& d) {
  static_cast<void>(d.participants());
  named_mutex m(d, "a");
  return m.try_lock() ? taken_for_dead : lives;
}

class DomainLives : public testing::Test {
 protected:
  void SetUp() override {
    named_mutex m(d_, "a");
    m.lock();
    m.unlock();
  }
  own_domain own_;
  domain d_ = domain::open(own_.name());
};

// ---- 1: a thread of this process ----

TEST_F(DomainLives, OwnThreadThatHasEndedWithoutLeavingIsDead) {
  pthread_t thread{};
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* d) -> void* {
                  named_mutex m(*static_cast<domain*>(d), "a");
                  m.lock();
                  end_without_leaving();
                  return nullptr;
                },
                &d_),
            0);
  pthread_join(thread, nullptr);
  EXPECT_TRUE(comes_free(d_));
}

TEST_F(DomainLives, OwnThreadThatHoldsLives) {
  std::atomic<int> step{0};
  std::thread thread([&] {
    named_mutex m(d_, "a");
    m.lock();
    step = 1;
    while (step != 2) usleep(500);
    m.unlock();
  });
  while (step != 1) usleep(500);
  EXPECT_FALSE(is_free(d_));
  step = 2;
  thread.join();
}

// ---- 2: the byte is locked by another open file ----

// The /proc of the mount namespace is that of a namespace of processes in which the holder's number
// is another process's, which started later.
TEST_F(DomainLives, LockedByteLivesWhateverAnotherMountNamespaceShows) {
  if (!is_root()) GTEST_SKIP() << "only root enters namespaces";
  living_holder it(own_);
  auto& inner = shared_words<std::atomic<int>>();
  const int number = it.process().pid();
  child keeper([&] {
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) return not_allowed_here;
    const pid_t first = fork();
    if (first < 0) return not_allowed_here;
    if (first != 0) {
      int status = 0;
      inner = inner < 0 ? inner.load() : first;
      waitpid(first, &status, 0);
      return 0;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CHECK_OR_RETURN(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0);
    CHECK_OR_RETURN(mount("proc", "/proc", "proc", 0, nullptr) == 0);
    const pid_t other = fork_by_clone3(number);
    while (other == 0) pause();
    CHECK_OR_RETURN(other == number);
    while (inner == 0) usleep(500);
    inner = -inner;
    while (true) pause();
    return 0;
  });
  int status = 0;
  while (inner >= 0 && waitpid(keeper.pid(), &status, WNOHANG) == 0) usleep(500);
  if (inner >= 0) GTEST_SKIP() << "no namespaces here, or no choice of process numbers";
  child waiter([&] {
    const auto d = domain::attach(own_.name());
    CHECK_OR_RETURN(verdict_on_a_living(d) == lives);
    const std::string path = "/proc/" + std::to_string(-inner) + "/ns/mnt";
    const int there = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    CHECK_OR_RETURN(there >= 0 && setns(there, CLONE_NEWNS) == 0);
    CHECK_OR_RETURN(access(("/proc/" + std::to_string(number)).c_str(), F_OK) == 0);
    return verdict_on_a_living(d);
  });
  EXPECT_EQ(waiter.wait(), lives);
  end_made(-inner);
  it.end();
  EXPECT_TRUE(comes_free(d_));
}

TEST_F(DomainLives, LockedByteLivesWhenStartTimesAreThoseOfAnotherTimeNamespace) {
  if (!is_root()) GTEST_SKIP() << "only root enters namespaces";
  living_holder it(own_);
  child waiter([&] {
    const auto d = domain::attach(own_.name());
    CHECK_OR_RETURN(verdict_on_a_living(d) == lives);
    if (unshare(CLONE_NEWTIME) != 0) return not_allowed_here;
    std::ofstream("/proc/self/timens_offsets") << "boottime 100000 0\n";
    const int there = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
    CHECK_OR_RETURN(there >= 0);
    // The kernel refuses this to a process of several threads, as an emulated one is.
    if (setns(there, CLONE_NEWTIME) != 0) return not_allowed_here;
    return verdict_on_a_living(d);
  });
  const int code = waiter.wait();
  if (code == not_allowed_here) GTEST_SKIP() << "no namespaces of time here";
  EXPECT_EQ(code, lives);
  it.end();
  EXPECT_TRUE(comes_free(d_));
}

TEST_F(DomainLives, LockedByteLivesWhileItIsStoppedOrTraced) {
  living_holder it(own_);
  kill(it.process().pid(), SIGSTOP);
  EXPECT_FALSE(is_free(d_));
  kill(it.process().pid(), SIGCONT);
  EXPECT_FALSE(is_free(d_));
  it.end();
  EXPECT_TRUE(comes_free(d_));
}

// Wrong: only the process itself sees that its thread has ended without leaving.
TEST_F(DomainLives, LockedByteHidesAThreadThatHasEndedWithoutLeaving) {
  auto& step = shared_words<std::atomic<int>>();
  child process([&] {
    auto d = domain::attach(own_.name());
    pthread_t thread{};
    CHECK_OR_RETURN(pthread_create(
                        &thread, nullptr,
                        [](void* of) -> void* {
                          named_mutex m(*static_cast<domain*>(of), "a");
                          m.lock();
                          end_without_leaving();
                          return nullptr;
                        },
                        &d) == 0);
    pthread_join(thread, nullptr);
    step = 1;
    while (step != 2) usleep(500);
    static_cast<void>(d.participants());  // it looks
    step = 3;
    while (true) pause();
    return 0;
  });
  while (step != 1) usleep(500);
  EXPECT_FALSE(is_free(d_));
  step = 2;
  while (step != 3) usleep(500);
  EXPECT_TRUE(comes_free(d_));
}

// Wrong: a child that has never called us has its parent's open file.
TEST_F(DomainLives, LockedByteIsKeptByAChildThatHasNeverCalledUs) {
  auto& grandchild = shared_words<std::atomic<int>>();
  living_holder it(own_, [&] {
    const pid_t made = fork_by_clone3();
    while (made == 0) pause();
    grandchild = made;
  });
  it.end();
  if (grandchild < 0) GTEST_SKIP() << "clone3 is refused here";
  EXPECT_FALSE(is_free(d_));
  end_made(grandchild);
  EXPECT_TRUE(comes_free(d_));
}

// ---- 3: the image; those of exec are in images_test.cpp ----

// The number of a process that was killed is its successor's, which starts in the same tick of the
// clock, and maps the file: nothing but the image tells them apart.
TEST_F(DomainLives, ImageOfAnotherProcessOfThatNumberAndStartIsDead) {
  if (!is_root()) GTEST_SKIP() << "only root chooses process numbers";
  constexpr int tries = 200;
  for (int i = 0; i < tries; ++i) {
    living_holder it(own_);
    const int number = it.process().pid();
    const auto before = detail::first_thread_of(number);
    it.end();
    const pid_t next = fork_by_clone3(number);
    if (next == 0) {
      const bool is_same_tick = detail::first_thread_of(getpid()).born == before.born;
      if (!is_same_tick) _exit(not_allowed_here);
      named_mutex m(domain::attach(own_.name()), "a");
      const bool had = m.try_lock_for(5s);
      _exit(had && m.owner_died() ? 0 : 1);
    }
    if (next < 0) GTEST_SKIP() << "no choice of process numbers here";
    int status = 0;
    ASSERT_EQ(waitpid(next, &status, 0), next);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == not_allowed_here) {
      EXPECT_TRUE(comes_free(d_));
      continue;
    }
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return;
  }
  GTEST_SKIP() << "no two processes started in one tick";
}

// ---- 4: /proc of our namespaces ----

TEST_F(DomainLives, ProcSaysThatAProcessLivesThatHasClosedItsDescriptors) {
  living_holder it(own_, [] { close_range(3, ~0U, 0); });
  EXPECT_FALSE(is_free(d_));
  kill(it.process().pid(), SIGSTOP);
  EXPECT_FALSE(is_free(d_));
  it.end();
  EXPECT_TRUE(comes_free(d_));
}

TEST_F(DomainLives, ProcSaysThatAZombieIsDead) {
  living_holder it(own_);
  it.process().kill();
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(it.process().pid()), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(comes_free(d_));
}

TEST_F(DomainLives, ProcSaysThatAnotherProgramHasNoFile) {
  living_holder it(own_, [] {
    std::thread([] { usleep(20'000), execl("/bin/sleep", "sleep", "1000", nullptr); }).detach();
  });
  EXPECT_TRUE(comes_free(d_));
}

// The number is that of a process that started later, and that maps the file as our copy.
TEST_F(DomainLives, ProcSaysThatAProcessOfThatNumberStartedLater) {
  if (!is_root()) GTEST_SKIP() << "only root chooses process numbers";
  living_holder it(own_);
  const int number = it.process().pid();
  std::this_thread::sleep_for(30ms);  // some ticks
  it.end();
  const pid_t next = fork_by_clone3(number);
  while (next == 0) pause();
  if (next < 0) GTEST_SKIP() << "no choice of process numbers here";
  EXPECT_TRUE(comes_free(d_));
  end_made(next);
  waitpid(next, nullptr, 0);
}

// Wrong: who may not read which files another user's program maps cannot know that it is another
// one.
TEST(DomainLivesOfUsers, ProcHidesWhatAnotherUsersProgramMaps) {
  if (!is_root()) GTEST_SKIP() << "only root becomes other users";
  constexpr gid_t team = 61000;
  const own_domain own("-users");
  const domain_options ours{.mode = 0660, .group = std::to_string(team)};
  const auto d = domain::open(own.name(), ours);
  auto& step = shared_words<std::atomic<int>>();
  child program([&] {
    become(61001, team, {team});
    named_mutex m(domain::attach(own.name(), 0660), "a");
    m.lock();
    step = 1;
    execl("/bin/sleep", "sleep", "1000", nullptr);
    return 1;
  });
  const auto is_sleep = [&] {
    std::ifstream comm("/proc/" + std::to_string(program.pid()) + "/comm");
    std::string name;
    return std::getline(comm, name) && name == "sleep";
  };
  while (step != 1 || !is_sleep()) usleep(500);
  const auto as_another_user = [&] {
    return child([&] {
             become(61002, team, {team});
             return verdict_on_a_living(domain::attach(own.name(), 0660));
           })
        .wait();
  };
  EXPECT_EQ(as_another_user(), lives);
  program.kill();
  program.wait();
  EXPECT_EQ(as_another_user(), taken_for_dead) << "it has ended";
  domain::remove(own.name(), true, 0660);
}

// ---- 5: neither the byte nor /proc ----

/// Runs `body` as the first process of another namespace of processes.
int as_first_process(const std::function<int()>& body) {
  if (unshare(CLONE_NEWPID) != 0) return not_allowed_here;
  child first([&] {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return body();
  });
  return first.wait();
}

/// A holder there, which is ready when `step` is 1.
child holder_elsewhere(const own_domain& in, std::atomic<int>& step, bool closes_descriptors) {
  child made([&, closes_descriptors] {
    return as_first_process([&] {
      named_mutex m(domain::attach(in.name()), "a");
      m.lock();
      if (closes_descriptors) close_range(3, ~0U, 0);
      step = 1;
      while (true) pause();
      return 0;
    });
  });
  int status = 0;
  while (step == 0 && waitpid(made.pid(), &status, WNOHANG) == 0) usleep(500);
  return made;
}

TEST_F(DomainLives, NothingIsKnownElsewhereButTheByte) {
  auto& step = shared_words<std::atomic<int>>();
  child it = holder_elsewhere(own_, step, false);
  if (step == 0) GTEST_SKIP() << "only root makes namespaces of processes";
  EXPECT_FALSE(is_free(d_));
  it.kill();
  it.wait();
  EXPECT_TRUE(comes_free(d_));
}

// A child that fork() has made maps what its parent has mapped, and keeps no byte by that.
TEST(DomainLivesElsewhere, NoMappingKeepsTheByte) {
  const own_domain own;  // that this process has not mapped
  auto& step = shared_words<std::atomic<int>>();
  child first([&] {
    return as_first_process([&] {
      child holds([&] {
        named_mutex m(domain::open(own.name()), "a");
        m.lock();
        const pid_t made = fork();
        while (made == 0) pause();
        raise(SIGKILL);
        return 0;
      });
      holds.wait();
      step = 1;
      while (true) pause();
      return 0;
    });
  });
  int status = 0;
  while (step == 0 && waitpid(first.pid(), &status, WNOHANG) == 0) usleep(500);
  if (step == 0) GTEST_SKIP() << "only root makes namespaces of processes";
  EXPECT_TRUE(comes_free(domain::attach(own.name())));
}

// Wrong, and docs/domains.md says so.
TEST_F(DomainLives, NothingSaysThatAProcessElsewhereLivesThatHasClosedItsDescriptors) {
  auto& step = shared_words<std::atomic<int>>();
  child it = holder_elsewhere(own_, step, true);
  if (step == 0) GTEST_SKIP() << "only root makes namespaces of processes";
  EXPECT_TRUE(comes_free(d_));
}

/// From now on the kernel does not say which bytes are locked.
bool refuse_to_say() {
  constexpr auto number = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  constexpr auto command = static_cast<std::uint32_t>(offsetof(seccomp_data, args[1]));
  std::array<sock_filter, 6> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, command),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_GETLK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(DomainLives, NothingAtAllIsKnownSoItLives) {
  auto& step = shared_words<std::atomic<int>>();
  child it = holder_elsewhere(own_, step, false);
  if (step == 0) GTEST_SKIP() << "only root makes namespaces of processes";
  it.kill();
  it.wait();
  child blind([&] {
    const auto d = domain::attach(own_.name());
    if (!refuse_to_say()) return not_allowed_here;
    return verdict_on_a_living(d);
  });
  const int code = blind.wait();
  EXPECT_TRUE(code == lives || code == not_allowed_here) << code;
  EXPECT_TRUE(comes_free(d_));
}

// The same without the byte, where /proc knows.
TEST_F(DomainLives, ProcSaysThatAProcessHasEndedWhereTheByteIsNotKnown) {
  living_holder it(own_);
  it.end();
  child blind([&] {
    const auto d = domain::attach(own_.name());
    if (!refuse_to_say()) return not_allowed_here;
    return comes_free(d) ? 0 : 1;
  });
  const int code = blind.wait();
  if (code == not_allowed_here) GTEST_SKIP() << "no system call can be refused here";
  EXPECT_EQ(code, 0);
}

// ---- children: what is the parent's is not theirs ----

class DomainChildren : public testing::TestWithParam<way_to_fork> {};

TEST_P(DomainChildren, AreToldThatAHandleIsTheirParents) {
  if (!is_noticed(GetParam())) GTEST_SKIP() << "no page is wiped in this child";
  const own_domain own;
  const auto d = domain::open(own.name());
  named_shared_mutex m(d, "a");
  named_mutex unheld(d, "b");
  unheld.lock();
  unheld.unlock();
  m.lock();
  auto& step = shared_words<std::atomic<int>>();
  const pid_t made = GetParam().fork();
  if (made < 0) GTEST_SKIP() << "this way to fork is refused here";
  if (made == 0) {
    int wrong = 0;
    wrong += refusal_of([&] { m.unlock(); }).first !=
             static_cast<int>(domain_error::reason::wrong_thread);
    wrong += refusal_of([&] { unheld.lock(); }).first !=
             static_cast<int>(domain_error::reason::wrong_thread);
    named_shared_mutex mine(d, "a");
    if (mine.try_lock_for(20ms)) wrong += 10;
    step = 1;
    while (step != 2) usleep(500);
    mine.lock();  // the parent has released
    step = 3;
    while (step != 4) usleep(500);
    mine.unlock();
    _exit(wrong);
  }
  while (step != 1) usleep(500);
  EXPECT_FALSE(child([&] {
                 named_mutex third(domain::attach(own.name()), "a");
                 return third.try_lock() ? 1 : 0;
               }).wait())
      << "a child has released what its parent holds";
  EXPECT_NO_THROW(m.unlock());
  step = 2;
  while (step != 3) usleep(500);
  EXPECT_FALSE(m.try_lock());
  step = 4;
  int status = 0;
  ASSERT_EQ(waitpid(made, &status, 0), made);
  EXPECT_EQ(status, 0);
  m.lock();
  EXPECT_FALSE(m.owner_died());
  m.unlock();
}

// The child has its parent's open file, which keeps bytes locked, until it calls us.
TEST_P(DomainChildren, DoNotKeepWhatTheirParentHeld) {
  if (!is_noticed(GetParam())) GTEST_SKIP() << "no page is wiped in this child";
  const own_domain own;
  const auto d = domain::open(own.name());
  auto& grandchild = shared_words<std::atomic<int>>();
  child parent([&] {
    named_mutex m(domain::attach(own.name()), "a");
    m.lock();
    const pid_t made = GetParam().fork();
    if (made < 0) return not_allowed_here;
    if (made == 0) {
      static_cast<void>(domain::attach(own.name()).participants());
      grandchild = getpid();
      while (true) pause();
    }
    while (grandchild == 0) usleep(500);
    raise(SIGKILL);
    return 0;
  });
  const int code = parent.wait();
  if (code == not_allowed_here) GTEST_SKIP() << "this way to fork is refused here";
  EXPECT_EQ(code, 1000 + SIGKILL);
  EXPECT_TRUE(comes_free(d));
  end_made(grandchild);
}

// A child that shares its parent's descriptors would close the file by which the parent has its
// byte; elsewhere the byte alone tells that the parent lives.
TEST_P(DomainChildren, LeaveTheirParentsByteLocked) {
  const own_domain own;
  const auto d = domain::open(own.name());
  named_mutex m(d, "a");
  m.lock();
  const pid_t made = GetParam().fork();
  if (made < 0) GTEST_SKIP() << "this way to fork is refused here";
  if (made == 0) {
    named_mutex other(d, "other");
    other.lock();
    other.unlock();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(made, &status, 0), made);
  EXPECT_EQ(status, 0);
  child elsewhere([&] {
    return as_first_process([&] {
      named_mutex third(domain::attach(own.name()), "a");
      return third.try_lock_for(20ms) ? 1 : 0;
    });
  });
  const int code = elsewhere.wait();
  m.unlock();
  if (code == not_allowed_here) GTEST_SKIP() << "only root makes namespaces of processes";
  EXPECT_EQ(code, 0) << "elsewhere the holder was taken for dead";
}

INSTANTIATE_TEST_SUITE_P(Each, DomainChildren, testing::ValuesIn(ways_to_fork),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace lockflight::test
