// All that a process has started is found and ended, however it was started.
#include "cli/descendants.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "tests/support/long_tests.hpp"

namespace lockflight::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t second = 1'000'000'000;

/// A pipe whose writing end all processes of a test inherit: they are gone when its reader finds
/// the end, whatever /proc says.
class common_pipe {
 public:
  common_pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    reading_ = descriptor(ends[0]);
    writing_ = descriptor(ends[1]);
  }
  /// For a process of the test.
  void write(char what) const {
    if (::write(writing_.get(), &what, 1) != 1) _exit(1);
  }
  /// For the test: the next character, or 0 when all processes are gone.
  char read(int within_ms = 10'000) {
    writing_ = descriptor();
    pollfd end{.fd = reading_.get(), .events = POLLIN, .revents = 0};
    if (poll(&end, 1, within_ms) != 1) return '?';
    char what = 0;
    return ::read(reading_.get(), &what, 1) == 1 ? what : '\0';
  }
  bool is_at_end() { return read(0) == '\0'; }

 private:
  descriptor reading_, writing_;
};

/// Runs `act` in a child, which then ends.
pid_t in_child(const std::function<void()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  return child;
}

[[noreturn]] void sleep_for_ever() {
  while (true) pause();
}

/// Runs `act` in a session of its own, whose parent and grandparent have ended.
void as_daemon(const std::function<void()>& act) {
  const pid_t child = in_child([&] {
    setsid();
    in_child(act);
  });
  waitpid(child, nullptr, 0);
}

class Descendants : public testing::Test {
 protected:
  void terminate() { all_.terminate(0, now_ns() + second); }
  /// True if all are gone in time, and the pipe says so, too.
  bool are_gone(milliseconds within) {
    const auto end = std::chrono::steady_clock::now() + within;
    while (!all_.are_gone()) {
      if (std::chrono::steady_clock::now() > end) return false;
      if (kills_) all_.kill(0);
      std::this_thread::sleep_for(milliseconds(1));
    }
    return pipe_.is_at_end();
  }
  bool kill_all() {
    kills_ = true;
    all_.kill(0);
    return are_gone(milliseconds(10'000));
  }
  void TearDown() override { EXPECT_TRUE(kill_all()); }

  common_pipe pipe_;
  descendants all_;
  bool kills_ = false;
};

TEST_F(Descendants, none_are_gone_at_once) { EXPECT_TRUE(all_.are_gone()); }

TEST_F(Descendants, a_daemon_gets_SIGTERM) {
  as_daemon([&] {
    pipe_.write('d');
    sleep_for_ever();
  });
  ASSERT_EQ(pipe_.read(), 'd');
  EXPECT_FALSE(all_.are_gone());
  terminate();
  EXPECT_TRUE(are_gone(milliseconds(10'000)));
}

TEST_F(Descendants, a_stopped_process_ends_itself) {
  // Its parent stays, so the kernel does not continue it as one of an orphaned group.
  const pid_t child = in_child([&] {
    signal(SIGTERM, [](int) { _exit(0); });
    pipe_.write('s');
    raise(SIGSTOP);
    sleep_for_ever();
  });
  ASSERT_EQ(pipe_.read(), 's');
  ASSERT_EQ(waitpid(child, nullptr, WUNTRACED), child);
  terminate();
  EXPECT_TRUE(are_gone(milliseconds(10'000)));
}

TEST_F(Descendants, SIGKILL_ends_one_that_ignores_SIGTERM) {
  as_daemon([&] {
    signal(SIGTERM, SIG_IGN);
    pipe_.write('i');
    sleep_for_ever();
  });
  ASSERT_EQ(pipe_.read(), 'i');
  terminate();
  EXPECT_FALSE(are_gone(milliseconds(20)));
  EXPECT_TRUE(kill_all());
}

TEST_F(Descendants, a_process_that_cleans_up_gets_no_SIGTERM) {
  static common_pipe* pipe = nullptr;  // for the handler
  pipe = &pipe_;
  in_child([&] {
    for (int i = 0; i < 20; ++i) in_child(sleep_for_ever);  // so that the SIGTERMs take a while
    signal(SIGTERM, [](int) {
      const pid_t cleaner = fork();
      if (cleaner == 0) {
        signal(SIGTERM, SIG_DFL);
        sigset_t none;  // the handler blocks SIGTERM
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        usleep(20'000);
        pipe->write('c');
        _exit(0);
      }
      waitpid(cleaner, nullptr, 0);
      _exit(0);
    });
    pipe_.write('b');
    sleep_for_ever();
  });
  ASSERT_EQ(pipe_.read(), 'b');
  terminate();
  EXPECT_EQ(pipe_.read(), 'c');
  EXPECT_TRUE(are_gone(milliseconds(10'000)));
}

TEST_F(Descendants, a_deep_tree_is_reached_before_its_processes_are_waited_for) {
  // Each waits for its child, so none is an orphan before the call.
  std::function<void(int)> start = [&](int depth) {
    if (depth == 0) {
      pipe_.write('l');
      sleep_for_ever();
    }
    const pid_t child = in_child([&] { start(depth - 1); });
    in_child(sleep_for_ever);
    waitpid(child, nullptr, 0);
  };
  in_child([&] { start(30); });
  ASSERT_EQ(pipe_.read(), 'l');
  for (int call = 0; call < 3; ++call) all_.kill(0);
  EXPECT_EQ(pipe_.read(), '\0');
}

TEST_F(Descendants, a_child_of_a_thread_is_found) {
  static common_pipe* pipe = nullptr;  // for the handler
  pipe = &pipe_;
  in_child([&] {
    signal(SIGTERM, SIG_IGN);
    std::thread other([&] {
      in_child([&] {
        signal(SIGTERM, [](int) { pipe->write('e'); });
        pipe_.write('t');
        sleep_for_ever();
      });
      sleep_for_ever();
    });
    other.join();
  });
  ASSERT_EQ(pipe_.read(), 't');
  terminate();
  EXPECT_EQ(pipe_.read(), 'e');
}

/// Starts its successor and ends, or goes on for a while, without end.
void storm(useconds_t goes_on_us) {
  while (true) {
    const pid_t child = fork();
    if (child == 0) continue;
    usleep(goes_on_us);
    _exit(0);
  }
}

TEST_F(Descendants, a_fork_storm_ends) {
  const int storms = test::long_tests() ? 32 : 16;
  for (int i = 0; i < storms; ++i)
    in_child([&] {
      setsid();
      pipe_.write('f');
      storm(i % 2 == 0 ? 0 : 2'000);
    });
  for (int i = 0; i < storms; ++i) ASSERT_EQ(pipe_.read(), 'f');
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(all_.are_gone());
  EXPECT_TRUE(kill_all());
}

TEST(EarlierChildren, are_left_alone) {
  const pid_t earlier = in_child(sleep_for_ever);
  {
    descendants all;
    common_pipe pipe;
    as_daemon([&] {
      pipe.write('d');
      sleep_for_ever();
    });
    ASSERT_EQ(pipe.read(), 'd');
    EXPECT_FALSE(all.are_gone());
    all.kill(0);
    EXPECT_EQ(pipe.read(), '\0');
    while (!all.are_gone()) std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(waitpid(earlier, nullptr, WNOHANG), 0) << "it has ended";
  kill(earlier, SIGKILL);
  EXPECT_EQ(waitpid(earlier, nullptr, 0), earlier);
}

/// This process may not signal processes of other users from here on.
bool drop_CAP_KILL() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  for (auto* const set : {&data[0].effective, &data[0].permitted, &data[0].inheritable})
    *set &= ~(1U << CAP_KILL);
  return syscall(SYS_capset, &header, data.data()) == 0;
}

/// The line on standard error of a process that `prepare` has made, and that waits for a child for
/// more than a second after SIGKILL. The child runs `begin`.
std::string said_of(const std::function<bool()>& prepare, const std::function<bool()>& begin) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return "no pipe";
  const pid_t run = in_child([&] {
    dup2(ends[1], STDERR_FILENO);
    if (!prepare()) _exit(1);
    descendants all;
    common_pipe pipe;
    in_child([&] {
      if (!begin()) _exit(1);
      pipe.write('b');
      usleep(1'300'000);
    });
    if (pipe.read() != 'b') _exit(2);
    const std::uint64_t began = now_ns();
    while (!all.are_gone()) {
      all.kill(0);
      usleep(10'000);
    }
    _exit(now_ns() - began > second ? 0 : 3);
  });
  int status = 0;
  waitpid(run, &status, 0);
  std::array<char, 4096> text{};
  const ssize_t bytes = read(ends[0], text.data(), text.size());
  for (const int end : ends) close(end);
  if (status != 0) return "status " + std::to_string(status);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

constexpr const char* waits =
    "lockflight run: waits for what COMMAND has started and SIGKILL has not ended: ";

TEST(ProcessThatCannotBeEnded, of_another_user_is_named_and_waited_for) {
  if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string line = said_of(drop_CAP_KILL, [] { return setuid(4711) == 0; });
  EXPECT_TRUE(line.starts_with(std::string(waits) + "process ")) << line;
  EXPECT_TRUE(line.ends_with("'cli_descendants', which this user may not end\n")) << line;
}

TEST(ProcessThatCannotBeEnded, that_proc_does_not_show_is_waited_for) {
  if (getuid() != 0) GTEST_SKIP() << "only root can cover /proc";
  const auto cover_proc = [] {
    return unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
  };
  EXPECT_EQ(said_of(cover_proc, [] { return true; }),
            std::string(waits) + "processes that /proc does not show\n");
}

TEST(OtherNamespace, processes_are_found_by_the_numbers_of_proc) {
  if (getuid() != 0) GTEST_SKIP() << "only root can make a PID namespace";
  const pid_t outside = in_child([] {
    if (unshare(CLONE_NEWPID) != 0) _exit(1);
    const pid_t first = in_child([] {
      common_pipe pipe;
      descendants all;  // the /proc here is that of the namespace around
      as_daemon([&] {
        pipe.write('d');
        sleep_for_ever();
      });
      if (pipe.read() != 'd') _exit(2);
      all.kill(0);
      _exit(pipe.read() == '\0' ? 0 : 3);
    });
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WEXITSTATUS(status));
  });
  int status = 0;
  waitpid(outside, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace lockflight::cli
