// The process that started a run dies: its ranks do not outlive it, whatever they were doing.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>

#include <atomic>
#include <random>
#include <string>

#include "lockflight/lock/create.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "support.hpp"

namespace lockflight::test {
namespace {

using participant = rma::participant<shm::port>;

struct start_count {
  std::atomic<int> started{0};
};

/// Orphans become ours, so that we can wait for them as for children.
class killed_parent : public testing::Test {
 protected:
  void SetUp() override {
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) GTEST_SKIP() << "qemu-user has no subreapers";
  }
  void TearDown() override { prctl(PR_SET_CHILD_SUBREAPER, 0); }

  /// Starts a process that starts a run.
  template <class Body>
  static pid_t start_parent(const shm::config& what, Body body) {
    const pid_t parent = fork();
    if (parent != 0) return parent;
    try {
      shm::run(what, body);
    } catch (...) {
      _exit(1);
    }
    _exit(0);
  }

  /// Reaps all processes that die; true if in the end none is left.
  static bool all_vanish() {
    return eventually([] {
      pid_t gone = 0;
      while ((gone = waitpid(-1, nullptr, WNOHANG)) > 0) continue;
      return gone == -1 && errno == ECHILD;
    });
  }
};

TEST_F(killed_parent, takes_its_ranks_with_it) {
  for (const char* const waiting : {"auto", "spin", "yield", "park"}) {
    SCOPED_TRACE(waiting);
    const shared_with_ranks<start_count> seen;
    const int ranks = 4;
    const pid_t parent = start_parent({.machine = rma::topology::flat(ranks), .waiting = waiting},
                                      [&](participant& me) {
                                        auto mutex = lock::create<lock::d_mcs>(me);
                                        ++seen->started;
                                        mutex.lock();  // one holds, the others wait in the queue
                                        wait_for_ever(me);
                                      });
    ASSERT_GT(parent, 0);
    EXPECT_TRUE(eventually([&] { return seen->started == ranks; }));
    kill(parent, SIGKILL);
    EXPECT_TRUE(all_vanish());
  }
}

TEST_F(killed_parent, at_any_moment_of_its_start) {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 20; ++i) {
    const shared_with_ranks<start_count> seen;
    const int when = static_cast<int>(random() % 32);
    SCOPED_TRACE(testing::Message() << "after " << when << " ranks started, seed " << seed());
    const pid_t parent = start_parent({.machine = rma::topology::flat(32)}, [&](participant& me) {
      ++seen->started;
      wait_for_ever(me);
    });
    ASSERT_GT(parent, 0);
    EXPECT_TRUE(eventually([&] { return seen->started >= when; }));
    kill(parent, SIGKILL);
    EXPECT_TRUE(all_vanish());
  }
}

}  // namespace
}  // namespace lockflight::test
