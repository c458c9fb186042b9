// The exact costs of dslr: uncontended, when a counter wraps around, when an attempt fails, and
// when readers and writers wait for each other.
#include <gtest/gtest.h>

#include "counts.hpp"
#include "lockflight/lock/dslr.hpp"

namespace lockflight::test {
namespace {

using rma::topology;

const operation_counts ticket{.fetch_add = 1, .flush = 1};
const operation_counts served_writer{.add = 1, .flush = 1};
const operation_counts attempt{.get = 1, .cas = 1, .flush = 2};

/// With 3 bits the eighth ticket of each counter wraps it around.
void tickets_alone(std::int64_t counter_bits) {
  on_every_rank(far_apart, [=](counted_participant& me) {
    placed<lock::dslr> l(me, {.counter_bits = counter_bits});
    if (me.rank() == 0) return;
    const int last = counter_bits == 3 ? 7 : -1;  // the ticket after which a counter wraps around
    for (int number = 0; number < 8; ++number) {
      const operation_counts drawn =
          number == last ? operation_counts{.add = 1, .fetch_add = 1, .flush = 2} : ticket;
      costs(me, "lock_shared", drawn, [&] { l.lock.lock_shared(); });
      costs(me, "unlock_shared", drawn, [&] { l.lock.unlock_shared(); });
      costs(me, "lock", drawn, [&] { l.lock.lock(); });
      costs(me, "unlock", served_writer, [&] { l.lock.unlock(); });
    }
    costs(me, "try_lock_shared", attempt, [&] { require(l.lock.try_lock_shared(), "it is free"); });
    costs(me, "try_lock beside a reader", {.get = 1, .flush = 1},
          [&] { require(!l.lock.try_lock(), "a reader is in"); });
    costs(me, "unlock_shared", ticket, [&] { l.lock.unlock_shared(); });
    costs(me, "try_lock", attempt, [&] { require(l.lock.try_lock(), "it is free"); });
    costs(me, "try_lock_shared beside a writer", {.get = 1, .flush = 1},
          [&] { require(!l.lock.try_lock_shared(), "a writer is in"); });
    costs(me, "unlock", served_writer, [&] { l.lock.unlock(); });
  });
}

TEST(dslr_counts, uncontended) { tickets_alone(15); }
TEST(dslr_counts, uncontended_with_counters_that_wrap_around) { tickets_alone(3); }

// A release is one operation, however many wait: they poll.
TEST(dslr_counts, a_waiter_polls) {
  for (const bool shared : {false, true})
    on_every_rank(far_apart, [=](counted_participant& me) {
      rma::barrier both(me);
      placed<lock::dslr> l(me, {.wait_ns = 1'000});
      if (me.rank() == 0) l.lock.lock();
      both.arrive_and_wait();
      if (me.rank() == 0) {
        watch(me, l.cells.tickets, [=](rma::word now) {
          return (now >> (shared ? 0 : 16) & 0xffff) == (shared ? 1u : 2u);  // it has drawn
        });
        costs(me, "the release", {.add = 1, .flush = 1, .loopback = 1}, [&] { l.lock.unlock(); });
        both.arrive_and_wait();
        return;
      }
      me.port().reset_counts();
      shared ? l.lock.lock_shared() : l.lock.lock();
      const operation_counts spent = me.port().counts();
      require(spent.fetch_add == 1 && spent.get >= 1, "one ticket, and polls");
      require(spent == operation_counts{.get = spent.get, .fetch_add = 1, .flush = 1 + spent.get},
              "nothing else");
      shared ? l.lock.unlock_shared() : l.lock.unlock();
      both.arrive_and_wait();
    });
}

TEST(dslr_counts, refuses_more_ranks_than_it_can_tell_apart) {
  static_assert(lock::dslr<counted_port>::most_ranks({}) == 1 << 15);
  on_every_rank(topology::flat(8),
                [](counted_participant& me) { placed<lock::dslr> l(me, {.counter_bits = 3}); });
  on_every_rank(topology::flat(9), [](counted_participant& me) {
    try {
      placed<lock::dslr> l(me, {.counter_bits = 3});
      require(false, "9 ranks are too many");
    } catch (const std::invalid_argument& refused) {
      require(
          std::string(refused.what()) ==
              "dslr with counter_bits=3: 9 ranks (accepted: 1 to 8, as many as its counters can "
              "tell apart)",
          refused.what());
    }
  });
}

}  // namespace
}  // namespace lockflight::test
