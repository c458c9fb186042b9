// Runs in processes that their starter has left in an unusual state: without standard streams, or
// with SIGCHLD ignored.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "support.hpp"
#include "wireup/socket.hpp"

namespace lockflight::test {
namespace {

/// What the body returns in a process of its own. It exits at once, since standard error may be
/// closed there.
template <class Body>
[[nodiscard]] int in_a_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 99;
    try {
      code = body();
    } catch (...) {
      code = 98;
    }
    _exit(code);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

void close_standard_streams() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) close(fd);
}
[[nodiscard]] bool standard_streams_are_closed() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) >= 0) return false;
  return true;
}

// An open file with the number of standard error would get the messages of the caller's program.
TEST(caller, without_standard_streams_no_file_has_their_numbers) {
  for (const bool threads : {false, true}) {
    SCOPED_TRACE(threads);
    const int code = in_a_child([threads] {
      close_standard_streams();
      std::atomic<bool> none = true;
      shm::run_ports(
          {.machine = rma::topology::flat(2), .threads = threads},
          [](shm::port& p) {
            p.pause(200'000'000);  // the watch sees us
            require(standard_streams_are_closed(), "a rank has a file there");
          },
          [&] { none = none && standard_streams_are_closed(); });
      return none && standard_streams_are_closed() ? 0 : 1;
    });
    EXPECT_EQ(code, 0);
  }
}

TEST(caller, without_standard_streams_no_socket_has_their_numbers) {
  const int code = in_a_child([] {
    close_standard_streams();
    const wireup::socket first(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const wireup::socket second(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const bool closed_on_exec = (fcntl(second.get(), F_GETFD) & FD_CLOEXEC) != 0;
    return first.get() > STDERR_FILENO && second.get() > STDERR_FILENO && closed_on_exec &&
                   standard_streams_are_closed()
               ? 0
               : 1;
  });
  EXPECT_EQ(code, 0);
}

TEST(caller, a_failed_call_stays_one) {
  errno = EMFILE;
  EXPECT_EQ(above_standard(-1), -1);
  EXPECT_EQ(errno, EMFILE);
}

/// Of SIGCHLD, whose handler and flags the kernel returns.
[[nodiscard]] struct sigaction disposition() {
  struct sigaction now {};
  sigaction(SIGCHLD, nullptr, &now);
  return now;
}

void runs_well(bool fails = false) {
  const shm::config what{.machine = rma::topology::flat(3)};
  const auto body = [fails](shm::port& p) {
    if (fails && p.rank() == 1) throw std::runtime_error("as asked");
  };
  if (fails)
    EXPECT_THROW(shm::run_ports(what, body), shm::rank_failed);
  else
    EXPECT_NO_THROW(shm::run_ports(what, body));
}

class sigchld : public testing::Test {
 protected:
  void SetUp() override { before_ = disposition(); }
  void TearDown() override { sigaction(SIGCHLD, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

// The kernel throws the status of a child away then, and waitpid fails.
TEST_F(sigchld, may_be_ignored_by_the_caller) {
  signal(SIGCHLD, SIG_IGN);
  runs_well();
  EXPECT_EQ(disposition().sa_handler, SIG_IGN);
  runs_well(true);
  EXPECT_EQ(disposition().sa_handler, SIG_IGN);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST_F(sigchld, may_have_a_handler_and_no_statuses) {
  struct sigaction callers {};
  callers.sa_handler = [](int) {};
  callers.sa_flags = SA_NOCLDWAIT | SA_RESTART;
  sigaction(SIGCHLD, &callers, nullptr);
  runs_well();
  EXPECT_EQ(disposition().sa_handler, callers.sa_handler);
  EXPECT_NE(disposition().sa_flags & SA_NOCLDWAIT, 0);
}

TEST_F(sigchld, is_the_callers_in_a_rank) {
  signal(SIGCHLD, SIG_IGN);
  EXPECT_NO_THROW(shm::run_ports({.machine = rma::topology::flat(2)}, [](shm::port&) {
    require(disposition().sa_handler == SIG_IGN, "the rank has another disposition");
    shm::run_ports({.machine = rma::topology::flat(2)}, [](shm::port&) {});
    require(disposition().sa_handler == SIG_IGN, "the run in a rank has not restored it");
  }));
}

TEST_F(sigchld, is_restored_by_the_last_of_several_runs) {
  signal(SIGCHLD, SIG_IGN);
  std::vector<std::jthread> threads;
  std::atomic<int> failed = 0;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      try {
        shm::run_ports({.machine = rma::topology::flat(2)}, [i](shm::port& p) {
          p.pause(static_cast<std::uint64_t>(i + 1) * 30'000'000);
        });
      } catch (const std::exception&) {
        ++failed;
      }
    });
  threads.clear();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(disposition().sa_handler, SIG_IGN);
}

}  // namespace
}  // namespace lockflight::test
