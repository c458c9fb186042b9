// The costs of an uncontended acquire and release and of a failed attempt: exact counts, for every
// lock but those that have a test of their own, such as rma_rw_counts_test.cpp.
// handoff_counts_test.cpp has the costs of waiting and handing over.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "counts.hpp"
#include "lockflight/baseline/pthread.hpp"
#include "lockflight/lock/all.hpp"

namespace lockflight::test {
namespace {

using rma::topology;

TEST(operation_counts, pins_every_lock) {
  lock::all::for_each([]<class Family>(Family) {
    const std::string_view name = Family::template on<counted_port>::about.name;
    std::string file(name);
    std::ranges::replace(file, '-', '_');
    EXPECT_TRUE(measured_locks().contains(name))
        << "no test measures the operations of " << name << ": add tests/lock/" << file
        << "_counts_test.cpp, made as tests/lock/example_ticket_counts_test.cpp";
  });
}

// ---- spin, spin-backoff ----

template <template <class> class Lock>
void spin_costs() {
  uncontended<Lock>(far_apart, [](rma::rank_t rank) -> both_costs {
    const std::uint64_t loopback = rank == 0 ? 1 : 0;
    return {{.cas = 1, .flush = 1, .loopback = loopback},
            {.put = 1, .flush = 1, .loopback = loopback}};
  });
  on_every_rank(far_apart, [](counted_participant& me) {
    rma::barrier both(me);
    placed<Lock> l(me);
    if (me.rank() == 0) l.lock.lock();
    both.arrive_and_wait();
    if (me.rank() == 1)
      costs(me, "failed try_lock", {.cas = 1, .flush = 1},
            [&] { require(!l.lock.try_lock(), "rank 0 has it"); });
  });
}

TEST(operation_counts, spin) { spin_costs<lock::spin>(); }
TEST(operation_counts, spin_backoff) { spin_costs<lock::spin_backoff>(); }

// ---- d-mcs ----

TEST(operation_counts, d_mcs_is_one_swap_and_one_compare_swap) {
  uncontended<lock::d_mcs>(topology::balanced({2, 1}), [](rma::rank_t rank) -> both_costs {
    const std::uint64_t loopback = rank == 0 ? 1 : 0;
    return {{.swap = 1, .flush = 1, .loopback = loopback},
            {.cas = 1, .flush = 1, .loopback = loopback, .load = 1}};
  });
}

TEST(operation_counts, d_mcs_failed_attempt_is_one_compare_swap) {
  on_every_rank(topology::balanced({2, 1}), [](counted_participant& me) {
    rma::barrier both(me);
    placed<lock::d_mcs> l(me);
    if (me.rank() == 0) l.lock.lock();
    both.arrive_and_wait();
    if (me.rank() == 1)
      costs(me, "failed try_lock", {.cas = 1, .flush = 1},
            [&] { require(!l.lock.try_lock(), "rank 0 has it"); });
  });
}

// ---- rma-mcs: N swaps and N compare-swaps ----

TEST(operation_counts, rma_mcs_one_level) {
  uncontended<lock::rma_mcs>(topology::flat(2), [](rma::rank_t) -> both_costs {
    return {{.swap = 1, .flush = 1, .loopback = 1},
            {.cas = 1, .flush = 1, .loopback = 1, .load = 1}};
  });
}

TEST(operation_counts, rma_mcs_two_levels) {
  uncontended<lock::rma_mcs>(topology::balanced({2, 2}), [](rma::rank_t rank) -> both_costs {
    const std::uint64_t loopback = rank < 2 ? 2 : 1;  // the root's tail lies on rank 0's node
    return {{.swap = 2, .flush = 2, .loopback = loopback},
            {.cas = 2, .flush = 2, .loopback = loopback, .load = 2}};
  });
}

TEST(operation_counts, rma_mcs_two_levels_with_its_home_elsewhere) {
  const auto expected = [](rma::rank_t rank) -> both_costs {
    const std::uint64_t loopback = rank < 2 ? 1 : 2;
    return {{.swap = 2, .flush = 2, .loopback = loopback},
            {.cas = 2, .flush = 2, .loopback = loopback, .load = 2}};
  };
  uncontended<lock::rma_mcs>(topology::balanced({2, 2}), expected, {}, /*home=*/3);
}

// An element of level 2 spans two nodes: its entry in the root's queue lies on its leader's node,
// and a participant of the other node needs a get to read it.
TEST(operation_counts, rma_mcs_three_levels) {
  uncontended<lock::rma_mcs>(topology::balanced({2, 2, 2}), [](rma::rank_t rank) -> both_costs {
    // Tails on the own node: the smallest element's always; rank 0 leads all, rank 4 the second
    // half.
    const std::uint64_t loopback = rank < 2 ? 3 : rank == 4 || rank == 5 ? 2 : 1;
    if (rank % 4 < 2)
      return {{.swap = 3, .flush = 3, .loopback = loopback},
              {.cas = 3, .flush = 3, .loopback = loopback, .load = 3}};
    return {{.swap = 3, .flush = 3, .loopback = loopback},
            {.get = 1, .cas = 3, .flush = 4, .loopback = loopback, .load = 2}};
  });
}

TEST(operation_counts, rma_mcs_failed_attempt) {
  on_every_rank(topology::balanced({2, 2}), [](counted_participant& me) {
    rma::barrier all(me);
    placed<lock::rma_mcs> l(me);
    const auto try_it = [&] { require(!l.lock.try_lock(), "rank 0 has it"); };
    if (me.rank() == 0) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() == 1)  // fails at the first queue
      costs(me, "failed try_lock", {.cas = 1, .flush = 1, .loopback = 1}, try_it);
    if (me.rank() == 2)  // fails at the root, leaves its element's queue
      costs(me, "failed try_lock", {.cas = 3, .flush = 3, .loopback = 2}, try_it);
  });
}

// ---- dq, dq-fair: Table 3 of the DLM paper ----

TEST(operation_counts, dq_is_two_compare_swaps) {
  uncontended<lock::dq>(topology::balanced({2, 1}), [](rma::rank_t rank) -> both_costs {
    const std::uint64_t loopback = rank == 0 ? 1 : 0;
    return {{.cas = 1, .flush = 1, .loopback = loopback},
            {.cas = 1, .flush = 1, .loopback = loopback, .load = 1}};
  });
}

TEST(operation_counts, dq_failed_attempt_is_one_compare_swap) {
  on_every_rank(topology::balanced({2, 1}), [](counted_participant& me) {
    rma::barrier both(me);
    placed<lock::dq> l(me);
    if (me.rank() == 0) l.lock.lock();
    both.arrive_and_wait();
    if (me.rank() == 1)
      costs(me, "failed try_lock", {.cas = 1, .flush = 1},
            [&] { require(!l.lock.try_lock(), "rank 0 has it"); });
  });
}

TEST(operation_counts, dq_fair_is_a_fetch_add_and_two_compare_swaps) {
  for (const std::int64_t bits : {3, 32})  // of the counter; with few of them it wraps around
    uncontended<lock::dq_fair>(
        topology::balanced({2, 1}),
        [](rma::rank_t rank) -> both_costs {
          const std::uint64_t n = rank == 0 ? 1 : 0;
          return {.acquire = {.fetch_add = 1, .cas = 1, .flush = 2, .loopback = 2 * n},
                  .release = {.cas = 1, .flush = 1, .loopback = n, .load = 1},
                  .attempt = operation_counts{.get = 2, .cas = 2, .flush = 3, .loopback = 4 * n}};
        },
        {.counter_bits = bits});
}

TEST(operation_counts, dq_fair_failed_attempt_is_a_look) {
  on_every_rank(topology::balanced({2, 1}), [](counted_participant& me) {
    rma::barrier both(me);
    placed<lock::dq_fair> l(me);
    if (me.rank() == 0) l.lock.lock();
    both.arrive_and_wait();
    if (me.rank() == 1)
      costs(me, "failed try_lock", {.get = 2, .flush = 1},
            [&] { require(!l.lock.try_lock(), "rank 0 has it"); });
  });
}

// ---- dlm-server, msg: 2 messages and 2 messages, of which the server sends one each ----

/// An acquire and a release of rank 1, with the lock's home at rank 0, and then of rank 0.
template <template <class> class Lock, class Acquire, class Try, class Release>
void two_messages_each(Acquire acquire, Try attempt, Release release) {
  on_every_rank(topology::balanced({2, 1}), [=](counted_participant& me) {
    rma::barrier both(me);
    placed<Lock> l(me);
    // Before rank 1 begins: rank 0 serves as long as it waits here, too.
    me.port().reset_counts();
    both.arrive_and_wait();
    if (me.rank() == 1) {
      const operation_counts one{.messages = 1};
      costs(me, "acquire", one, [&] { acquire(l.lock); });
      costs(me, "release", one, [&] { release(l.lock); });
      costs(me, "attempt", one, [&] { require(attempt(l.lock), "it is free"); });
      costs(me, "failed attempt", one, [&] { require(!l.lock.try_lock(), "we have it"); });
      costs(me, "release after an attempt", one, [&] { release(l.lock); });
      both.arrive_and_wait();
    } else {
      both.arrive_and_wait();  // where it serves
      require(me.port().counts().messages == 5, "one answer to each request");
      const operation_counts both_ways{.messages = 2};
      costs(me, "the home's own acquire", both_ways, [&] { acquire(l.lock); });
      costs(me, "the home's own release", both_ways, [&] { release(l.lock); });
    }
  });
}

constexpr auto exclusively = [](auto& l) { l.lock(); };
constexpr auto attempt_exclusively = [](auto& l) { return l.try_lock(); };
constexpr auto release_exclusive = [](auto& l) { l.unlock(); };

TEST(operation_counts, dlm_server_is_two_messages_and_two_messages) {
  two_messages_each<lock::dlm_server>(exclusively, attempt_exclusively, release_exclusive);
}

TEST(operation_counts, msg_is_two_messages_and_two_messages) {
  two_messages_each<lock::msg>(exclusively, attempt_exclusively, release_exclusive);
  two_messages_each<lock::msg>([](auto& l) { l.lock_shared(); },
                               [](auto& l) { return l.try_lock_shared(); },
                               [](auto& l) { l.unlock_shared(); });
}

// ---- fompi-rw, fompi-rw-backoff ----

template <template <class> class Lock>
void fompi_costs() {
  uncontended<Lock>(far_apart, [](rma::rank_t rank) -> both_costs {
    const std::uint64_t loopback = rank == 0 ? 2 : 0;
    return {{.fetch_add = 1, .cas = 1, .flush = 2, .loopback = loopback},
            {.add = 2, .flush = 1, .loopback = loopback}};
  });
  on_every_rank(far_apart, [](counted_participant& me) {
    if (me.rank() == 0) return;
    placed<Lock> l(me);
    const operation_counts acquire{.fetch_add = 1, .flush = 1};
    const operation_counts release{.add = 1, .flush = 1};
    const operation_counts refused{.add = 1, .fetch_add = 1, .flush = 2};

    costs(me, "lock_shared", acquire, [&] { l.lock.lock_shared(); });
    costs(me, "try_lock beside a reader", {.add = 1, .fetch_add = 1, .cas = 1, .flush = 3},
          [&] { require(!l.lock.try_lock(), "a reader is in"); });
    costs(me, "unlock_shared", release, [&] { l.lock.unlock_shared(); });

    costs(me, "lock_all", acquire, [&] { l.lock.lock_all(); });
    costs(me, "try_lock beside lock_all", refused,
          [&] { require(!l.lock.try_lock(), "lock_all is in"); });
    costs(me, "unlock_all", release, [&] { l.lock.unlock_all(); });

    l.lock.lock();
    costs(me, "try_lock beside a writer", {.add = 1, .fetch_add = 1, .cas = 1, .flush = 3},
          [&] { require(!l.lock.try_lock(), "a writer is in"); });
    costs(me, "try_lock_shared beside a writer", refused,
          [&] { require(!l.lock.try_lock_shared(), "a writer is in"); });
    l.lock.unlock();
    costs(me, "try_lock_shared", acquire, [&] { require(l.lock.try_lock_shared(), "free"); });
  });
}

TEST(operation_counts, fompi_rw) { fompi_costs<lock::fompi_rw>(); }
TEST(operation_counts, fompi_rw_backoff) { fompi_costs<lock::fompi_rw_backoff>(); }

// ---- the baselines: no operation of the contract ----

TEST(operation_counts, pthread_baselines) {
  const auto none = [](rma::rank_t) -> both_costs { return {}; };
  uncontended<baseline::pthread_mutex>(topology::balanced({2, 1}), none);
  uncontended<baseline::pthread_rwlock>(topology::balanced({2, 1}), none);
}

}  // namespace
}  // namespace lockflight::test
