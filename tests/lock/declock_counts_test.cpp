// The network operations of declock: those of cql between nodes, and none inside a node.
#include <gtest/gtest.h>

#include "counts.hpp"
#include "lockflight/lock/declock.hpp"

namespace lockflight::test {
namespace {

using hierarchy = placed<lock::declock>;

/// What the call spends beside the own node's CPU.
template <class Call>
void costs_of_network(counted_participant& me, const std::string& what, operation_counts expected,
                      Call call) {
  me.port().reset_counts();
  call();
  const operation_counts spent = me.port().counts();
  expected.load = spent.load, expected.store = spent.store, expected.rmw = spent.rmw;
  require(spent == expected, what + " costs" + to_text(spent) + ", not" + to_text(expected));
}

TEST(declock_counts, alone_as_cql) {
  on_every_rank(far_apart, [](counted_participant& me) {
    hooks(me).has_order = false;
    hierarchy l(me);
    if (me.rank() == 0) return;
    const operation_counts one{.fetch_add = 1, .flush = 1};
    const operation_counts attempt{.get = 1, .cas = 1, .flush = 2};
    costs_of_network(me, "lock_shared", one, [&] { l.lock.lock_shared(); });
    costs_of_network(me, "unlock_shared", one, [&] { l.lock.unlock_shared(); });
    costs_of_network(me, "lock", one, [&] { l.lock.lock(); });
    costs_of_network(me, "unlock", one, [&] { l.lock.unlock(); });
    costs_of_network(me, "try_lock", attempt, [&] { require(l.lock.try_lock(), "it is free"); });
    costs_of_network(me, "unlock", one, [&] { l.lock.unlock(); });
    costs_of_network(me, "try_lock_shared", attempt,
                     [&] { require(l.lock.try_lock_shared(), "it is free"); });
    costs_of_network(me, "unlock_shared", one, [&] { l.lock.unlock_shared(); });
  });
}

/// Rank 2 holds the lock until rank 3, of its node, waits. Rank 0 is another node's.
void inside_a_node(std::int64_t handovers, const operation_counts& release) {
  on_every_rank(two_nodes, [&](counted_participant& me) {
    rma::barrier all(me);
    hierarchy l(me, {.handovers = handovers});
    const auto waits = me.cells().take<rma::plain_cell>(1).at(2);
    if (me.rank() == 2) {
      l.lock.lock();
      all.arrive_and_wait();
      watch(me, waits, rma::equals(1));
      costs_of_network(me, "the release", release, [&] { l.lock.unlock(); });
    } else {
      all.arrive_and_wait();
    }
    if (me.rank() == 3) {
      int awaits = 0;  // of the record, and then of the node's queue
      hooks(me).before_await = [&] {
        if (++awaits == 2) rma::put_now(uncounted(me), waits, 1);
      };
      costs_of_network(me, "the acquire", {}, [&] { l.lock.lock(); });
      hooks(me).before_await = nullptr;
      l.lock.unlock();
    }
    all.arrive_and_wait();
  });
}

TEST(declock_counts, a_handover_inside_a_node_is_free) { inside_a_node(1, {}); }
// Nobody else is in the queue at the home, so the node keeps the lock.
TEST(declock_counts, the_bound_reads_the_header) { inside_a_node(0, {.get = 1, .flush = 1}); }

// Ranks 4 to 7 of a node have the lock in this order: two releases are handovers, and the third one
// reads whether another node waits.
TEST(declock_counts, so_many_handovers_are_free) {
  on_every_rank(rma::topology::balanced({2, 4}), [](counted_participant& me) {
    constexpr std::int64_t handovers = 2;
    rma::barrier all(me);
    hierarchy l(me, {.handovers = handovers});
    const auto last = me.cells().take<rma::plain_cell>(1).at(4);
    if (me.rank() == 4) l.lock.lock();
    all.arrive_and_wait();
    if (me.rank() == 4) {
      watch(me, last, rma::equals(7));
      costs_of_network(me, "the first release", {}, [&] { l.lock.unlock(); });
    } else if (me.rank() > 4) {
      const auto comes = static_cast<rma::word>(me.rank());
      if (me.rank() > 5) watch(me, last, rma::equals(comes - 1));
      int awaits = 0;  // of the record, and then of the node's queue
      hooks(me).before_await = [&] {
        if (++awaits == 2) rma::put_now(uncounted(me), last, comes);
      };
      costs_of_network(me, "the acquire", {}, [&] { l.lock.lock(); });
      hooks(me).before_await = nullptr;
      if (me.rank() == 5)
        costs_of_network(me, "the second release", {}, [&] { l.lock.unlock(); });
      else if (me.rank() == 6)
        costs_of_network(me, "the third release", {.get = 1, .flush = 1}, [&] { l.lock.unlock(); });
      else
        l.lock.unlock();
    }
    all.arrive_and_wait();
  });
}

TEST(declock_counts, a_reader_joins_its_node_for_free) {
  on_every_rank(two_nodes, [](counted_participant& me) {
    rma::barrier all(me);
    hierarchy l(me);
    if (me.rank() == 2) l.lock.lock_shared();
    all.arrive_and_wait();
    if (me.rank() == 3) {
      costs_of_network(me, "lock_shared", {}, [&] { l.lock.lock_shared(); });
      costs_of_network(me, "unlock_shared", {}, [&] { l.lock.unlock_shared(); });
      costs_of_network(me, "try_lock_shared", {},
                       [&] { require(l.lock.try_lock_shared(), "a reader is in"); });
      costs_of_network(me, "unlock_shared", {}, [&] { l.lock.unlock_shared(); });
      costs_of_network(me, "try_lock", {}, [&] { require(!l.lock.try_lock(), "a reader is in"); });
    }
    all.arrive_and_wait();
    if (me.rank() == 2) l.lock.unlock_shared();
  });
}

}  // namespace
}  // namespace lockflight::test
