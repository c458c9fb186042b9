// msg-deferred: the costs of an epoch, and that epochs exclude each other, large and small ones, on
// every fabric.
#include "lockflight/lock/msg_deferred.hpp"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "counts.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/rma/barrier.hpp"
#include "tests/support/fabrics.hpp"

namespace lockflight::test {
namespace {

using rma::plain_cell;
using rma::topology;
using rma::word;

static_assert(lock::defers<lock::msg_deferred<shm::port>>);

/// Rank 1 has epochs with a lock at rank 0; `epoch` is given the lock, two cells of rank 0 and one
/// of rank 1.
template <class Epoch>
void epoch_costs(const operation_counts& expected, Epoch epoch) {
  on_every_rank(topology::balanced({2, 1}), [=](counted_participant& me) {
    rma::barrier both(me);
    placed<lock::msg_deferred> l(me);
    const auto cells = me.cells().template take<plain_cell>(2);
    both.arrive_and_wait();
    me.port().reset_counts();
    if (me.rank() == 1)
      costs(me, "epoch", expected, [&] { epoch(l.lock, cells.at(0), cells.at(1)); });
    both.arrive_and_wait();  // where rank 0 serves
  });
}

TEST(msg_deferred, an_empty_epoch_costs_nothing) {
  epoch_costs({}, [](auto& l, plain_cell, plain_cell) {
    l.lock();
    l.unlock();
    l.lock_shared();
    l.unlock_shared();
  });
}

TEST(msg_deferred, an_epoch_of_one_operation_is_a_message) {
  epoch_costs({.messages = 2}, [](auto& l, plain_cell at_home, plain_cell) {
    l.lock();
    l.put(at_home, 7);
    l.unlock();
    word found = 0;
    l.lock_shared();
    l.get(at_home, found);
    require(found == 0, "what is read is there at the end of the epoch");
    l.unlock_shared();
    require(found == 7, "what was put is there after the epoch");
  });
}

TEST(msg_deferred, an_epoch_of_several_operations_is_two_messages_and_these) {
  epoch_costs({.put = 1, .get = 2, .flush = 1, .messages = 2},
              [](auto& l, plain_cell at_home, plain_cell) {
                word found[2] = {1, 1};
                l.lock();
                l.put(at_home, 7);
                l.get(at_home + 1, found[0]);
                l.get(at_home + 1, found[1]);
                l.unlock();
                require(found[0] == 0 && found[1] == 0, "all was done");
              });
}

TEST(msg_deferred, a_cell_elsewhere_is_not_the_servers_to_touch) {
  epoch_costs({.put = 1, .flush = 1, .loopback = 1, .messages = 2},
              [](auto& l, plain_cell, plain_cell elsewhere) {
                l.lock();
                l.put(elsewhere, 7);
                l.unlock();
              });
}

TEST(msg_deferred, an_epoch_is_limited) {
  on_every_rank(topology::flat(1), [](counted_participant& me) {
    auto l = lock::create<lock::msg_deferred>(me);
    const auto cell = me.cells().template take<plain_cell>(1).at(0);
    l.lock();
    for (std::size_t i = 0; i < l.most_operations; ++i) l.put(cell, i);
    bool refused = false;
    try {
      l.put(cell, 0);
    } catch (const std::length_error&) {
      refused = true;
    }
    require(refused, "one more than an epoch may have");
    l.unlock();
  });
}

// ---- epochs exclude each other ----

template <class Fabric>
struct msg_deferred_suite : testing::Test {};
struct fabric_names {
  template <class Fabric>
  static std::string GetName(int) {
    return Fabric::name;
  }
};
using epoch_fabrics = testing::Types<shm_plain, shm_delayed>;
TYPED_TEST_SUITE(msg_deferred_suite, epoch_fabrics, fabric_names);
const bool modes = run_in(usual_modes);

/// Two cells are written together, one by itself: a reader sees the two alike, and the one
/// unchanged between two reads.
template <class Port>
void epochs(rma::participant<Port>& me, int count) {
  rma::barrier all(me);
  const rma::rank_t home = me.machine().ranks() - 1;
  auto l = lock::create<lock::msg_deferred>(me, {}, home);
  const auto pair = me.cells().template take<plain_cell>(2).at(home);
  const auto one = me.cells().template take<plain_cell>(1).at(home);
  std::minstd_rand random(static_cast<unsigned>(seed()) + static_cast<unsigned>(me.rank()));
  all.arrive_and_wait();
  for (int i = 0; i < count; ++i) {
    const word mine = random();
    word read[4] = {};
    switch (random() % 4) {
      case 0:
        l.lock();
        l.put(pair, mine);
        l.put(pair + 1, mine);
        l.unlock();
        break;
      case 1:
        l.lock();
        l.put(one, mine);
        l.unlock();
        break;
      case 2:
        l.lock_shared();
        l.get(one, read[0]);
        l.unlock_shared();
        break;
      default:
        l.lock_shared();
        l.get(one, read[0]);
        l.get(pair, read[1]);
        l.get(pair + 1, read[2]);
        l.get(one, read[3]);
        l.unlock_shared();
        require(read[1] == read[2], "an epoch is seen whole");
        require(read[0] == read[3], "nothing changes within an epoch");
    }
  }
  all.arrive_and_wait();
}

TYPED_TEST(msg_deferred_suite, epochs_are_apart) {
  for (const topology& machine : {topology::flat(1), topology::flat(4), topology::balanced({2, 1}),
                                  topology::balanced({2, 3})})
    ASSERT_NO_THROW(TypeParam::run(machine, [](auto& me) { epochs(me, 100); }));
}

}  // namespace
}  // namespace lockflight::test
