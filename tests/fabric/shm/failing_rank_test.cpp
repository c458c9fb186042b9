// A rank fails without a signal: it throws, or exits in the middle of its work.
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "lockflight/lock/create.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/spin.hpp"
#include "lockflight/rma/barrier.hpp"
#include "support.hpp"

namespace lockflight::test {
namespace {

using participant = rma::participant<shm::port>;

/// Ranks as processes and as threads, in every way of waiting. Who spins keeps a core to itself.
struct start {
  bool threads;
  const char* waiting;
  int ranks;
};

class failing_rank : public testing::TestWithParam<start> {
 protected:
  [[nodiscard]] static shm::config config() {
    return {.machine = rma::topology::flat(GetParam().ranks),
            .threads = GetParam().threads,
            .waiting = GetParam().waiting};
  }
};

INSTANTIATE_TEST_SUITE_P(all_ways, failing_rank,
                         testing::Values(start{false, "auto", 2}, start{false, "auto", 8},
                                         start{false, "spin", 3}, start{false, "yield", 4},
                                         start{false, "park", 4}, start{true, "auto", 2},
                                         start{true, "auto", 8}, start{true, "spin", 3},
                                         start{true, "yield", 4}, start{true, "park", 4}),
                         [](const testing::TestParamInfo<start>& tested) {
                           return std::string(tested.param.threads ? "threads_" : "processes_") +
                                  tested.param.waiting + "_" + std::to_string(tested.param.ranks);
                         });

struct oversleeping : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST_P(failing_rank, throws_while_others_await) {
  const failure f = failure_of(config(), [](participant& me) {
    if (me.rank() == 1) throw oversleeping("overslept");
    wait_for_ever(me);
  });
  EXPECT_EQ(f.rank, 1);
  EXPECT_EQ(f.what, "rank 1 failed: overslept");
}

// The others are surely inside their wait when it throws: the test has seen them join the queue, or
// try.
TEST_P(failing_rank, throws_while_others_wait_for_a_queue_lock_that_it_holds) {
  const failure f = failure_of(config(), [](participant& me) {
    rma::barrier all(me);
    auto mutex = lock::create<lock::d_mcs>(me);
    const auto waiting = me.cells().take<rma::nic_cell>(1);
    if (me.rank() == 0) mutex.lock();
    all.arrive_and_wait();
    if (me.rank() == 0) {
      const auto others = static_cast<rma::word>(me.machine().ranks() - 1);
      me.port().await(waiting, rma::equals(others));
      throw oversleeping("with the lock in hand");
    }
    me.port().add(waiting, 1);
    me.port().flush();
    mutex.lock();
  });
  EXPECT_EQ(f.rank, 0);
  EXPECT_EQ(f.what, "rank 0 failed: with the lock in hand");
}

TEST_P(failing_rank, throws_while_others_poll_a_spin_lock_that_it_holds) {
  const failure f = failure_of(config(), [](participant& me) {
    rma::barrier all(me);
    auto slow = lock::create<lock::spin_backoff>(me, {.first_ns = 1'000, .most_ns = 500'000'000});
    auto fast = lock::create<lock::spin>(me);
    if (me.rank() == 0) {
      slow.lock();
      fast.lock();
    }
    all.arrive_and_wait();
    if (me.rank() == 0) throw oversleeping("with both locks in hand");
    if (me.rank() == 1) slow.lock();
    fast.lock();
  });
  EXPECT_EQ(f.what, "rank 0 failed: with both locks in hand");
}

TEST_P(failing_rank, throws_while_others_receive) {
  const failure f = failure_of(config(), [](participant& me) {
    if (me.rank() == 1) throw oversleeping("mute");
    static_cast<void>(me.port().receive());
  });
  EXPECT_EQ(f.what, "rank 1 failed: mute");
}

// No rank receives messages, so the senders fill the mailbox.
TEST_P(failing_rank, throws_while_others_send) {
  const failure f = failure_of(config(), [](participant& me) {
    rma::barrier all(me);
    all.arrive_and_wait();
    if (me.rank() == 0) throw oversleeping("deaf");
    while (true) me.port().send(0, {});
  });
  EXPECT_EQ(f.what, "rank 0 failed: deaf");
}

TEST_P(failing_rank, throws_what_is_no_exception) {
  const failure f = failure_of(config(), [](participant& me) {
    if (me.rank() == 1) throw 42;
    wait_for_ever(me);
  });
  EXPECT_EQ(f.what, "rank 1 failed: an exception of unknown type");
}

TEST_P(failing_rank, throws_more_than_there_is_room_for) {
  const failure f = failure_of(config(), [](participant& me) {
    if (me.rank() == 1) throw oversleeping(std::string(100'000, 'z'));
    wait_for_ever(me);
  });
  EXPECT_TRUE(f.what.starts_with("rank 1 failed: zzz")) << f.what;
  EXPECT_GT(f.what.size(), 500u);
}

// One of them is named, with its message.
TEST_P(failing_rank, throws_together_with_all_others) {
  for (int i = 0; i < 20; ++i) {
    const failure f = failure_of(config(), [](participant& me) {
      rma::barrier all(me);
      all.arrive_and_wait();
      throw oversleeping("I am " + std::to_string(me.rank()));
    });
    const std::string who = std::to_string(f.rank);
    EXPECT_EQ(f.what, "rank " + who + " failed: I am " + who);
  }
}

// ---- processes only: an exit ends a program of threads, as it should ----

TEST(exiting_rank, with_a_status) {
  for (const int status : {1, 3, 70, 255}) {
    const failure f = failure_of({.machine = rma::topology::flat(3)}, [&](participant& me) {
      if (me.rank() == 2) _exit(status);
      wait_for_ever(me);
    });
    EXPECT_EQ(f.rank, 2);
    EXPECT_TRUE(contains(f.what, "exited with status " + std::to_string(status))) << f.what;
  }
}

// It reports success without having done its work: the others would wait for ever.
TEST(exiting_rank, with_status_0) {
  const failure f = failure_of({.machine = rma::topology::flat(3)}, [&](participant& me) {
    if (me.rank() == 1) _exit(0);
    wait_for_ever(me);
  });
  EXPECT_EQ(f.rank, 1);
  EXPECT_TRUE(contains(f.what, "exited with status 0")) << f.what;
}

TEST(exiting_rank, while_it_holds) {
  const failure f = failure_of({.machine = rma::topology::flat(4)}, [](participant& me) {
    auto mutex = lock::create<lock::d_mcs>(me);
    mutex.lock();
    _exit(3);
  });
  EXPECT_TRUE(contains(f.what, "exited with status 3")) << f.what;
}

// ---- the monitor ----

class failing_monitor : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(both, failing_monitor, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& tested) {
                           return tested.param ? "threads" : "processes";
                         });

TEST_P(failing_monitor, ends_the_run) {
  const traces before = traces::now();
  const shm::config what{.machine = rma::topology::flat(3), .threads = GetParam()};
  const auto run = [&] {
    shm::run_ports(
        what,
        [&](shm::port& p) {
          participant me(p, what.words_per_rank);
          wait_for_ever(me);
        },
        [] { throw oversleeping("seen enough"); });
  };
  EXPECT_THROW(run(), oversleeping);
  EXPECT_EQ(traces::now().file_descriptors, before.file_descriptors);
  EXPECT_FALSE(traces::now().children);
}

}  // namespace
}  // namespace lockflight::test
