// Where the kernel, or a filter that confines the program, refuses membarrier: at the start ranks
// do without it; later the run fails with a reason, since others rely on it by then.
#include <errno.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <string>

#include "support.hpp"

namespace lockflight::test {
namespace {

using participant = rma::participant<shm::port>;

constexpr unsigned refused = SECCOMP_RET_ERRNO | EPERM;

/// From here on the system call comes to `what` in this process and those that it starts, but for
/// `spared` as its first argument.
void confine(long call, unsigned what, unsigned spared = UINT32_MAX) {
  const sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),  // its lower half
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, spared, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, what),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof rules / sizeof rules[0], const_cast<sock_filter*>(rules)};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  require(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "a filter of system calls");
}

/// With cores for all ranks, so that their stores have no fences.
const shm::config two{.machine = rma::topology::flat(2), .waiting = "park", .processors = 2};

/// In a process of its own, since it cannot be undone there.
template <class F>
[[nodiscard]] bool holds_apart(F f) {
  const pid_t apart = fork();
  if (apart == 0) {
    bool holds = false;
    try {
      holds = f();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    _exit(holds ? 0 : 1);
  }
  int status = 0;
  waitpid(apart, &status, 0);
  return status == 0;
}

/// True if the ranks of a run come to their end; one that asked for a barrier again would be
/// killed.
bool ranks_do_without() {
  shm::run_ports(two, [](shm::port& p) {
    confine(SYS_membarrier, SECCOMP_RET_KILL_PROCESS);
    p.fence_node();
    rma::participant<shm::port> me(p, two.words_per_rank);
    const auto flag = me.cells().take<rma::plain_cell>(1);
    if (me.rank() == 0) {
      p.pause(10'000'000);  // the other sleeps meanwhile
      p.store(flag.at(0), 1);
    } else {
      p.await(flag.at(0), rma::equals(1));
    }
  });
  return true;
}

TEST(membarrier, ranks_do_without_it_where_there_is_none) {
  EXPECT_TRUE(holds_apart([] {
    confine(SYS_membarrier, SECCOMP_RET_ERRNO | ENOSYS);
    return ranks_do_without();
  }));
}

// One may be registered for what one may not do.
TEST(membarrier, ranks_do_without_it_where_only_registering_is_allowed) {
  EXPECT_TRUE(holds_apart([] {
    confine(SYS_membarrier, refused, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
    return ranks_do_without();
  }));
}

// The other ranks would take it for one that a barrier reaches.
TEST(membarrier, a_rank_that_cannot_register_does_not_run) {
  static bool confines_children = false;
  pthread_atfork(nullptr, nullptr, [] {
    if (confines_children) confine(SYS_membarrier, refused);
  });
  confines_children = true;
  const failure seen = failure_of(two, [](participant&) {});
  confines_children = false;
  EXPECT_TRUE(contains(seen.what, "membarrier: Operation not permitted")) << seen.what;
}

TEST(membarrier, a_fence_of_the_node_that_is_refused_fails_the_run) {
  const failure seen = failure_of(two, [](participant& me) {
    const auto flag = me.cells().take<rma::plain_cell>(1).at(0);
    if (me.rank() == 0) {
      me.port().await(flag, rma::equals(1));
      return;
    }
    confine(SYS_membarrier, refused);
    me.port().fence_node();
    me.port().store(flag, 1);
  });
  EXPECT_EQ(seen.rank, 1);
  EXPECT_TRUE(contains(seen.what, "membarrier: Operation not permitted")) << seen.what;
}

// GLOBAL does what GLOBAL_EXPEDITED does, in milliseconds.
TEST(membarrier, the_slow_command_serves_where_the_quick_one_fails) {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0)
    GTEST_SKIP() << "this kernel has no MEMBARRIER_CMD_GLOBAL";
  const outcome seen = outcome_of(two, [](participant& me) {
    confine(SYS_membarrier, SECCOMP_RET_ERRNO | ENOMEM, MEMBARRIER_CMD_GLOBAL);
    me.port().fence_node();
  });
  EXPECT_EQ(seen.failed.rank, -1) << seen.failed.what;
}

// Without the barrier a writer may have looked for sleepers before it is one, and not wake it.
TEST(membarrier, who_cannot_have_one_does_not_sleep) {
  const outcome seen = outcome_of(two, [](participant& me) {
    const auto flag = me.cells().take<rma::plain_cell>(1).at(0);
    if (me.rank() == 0) {
      me.port().pause(30'000'000);
      me.port().store(flag, 1);
      return;
    }
    confine(SYS_membarrier, refused);
    confine(SYS_futex, SECCOMP_RET_KILL_PROCESS);
    me.port().await(flag, rma::equals(1));
  });
  EXPECT_EQ(seen.failed.rank, -1) << seen.failed.what;
}

}  // namespace
}  // namespace lockflight::test
