#include "lockflight/lock_table.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/rma_rw.hpp"
#include "lockflight/rma/barrier.hpp"

namespace lockflight {
namespace {

constexpr std::uint32_t words = 1u << 14;
using shm_participant = rma::participant<shm::port>;

void on_four_ranks(const std::function<void(shm_participant&)>& body) {
  shm::run({.machine = rma::topology::balanced({2, 2}), .threads = true, .words_per_rank = words},
           body);
}

TEST(LockTable, SpreadsItsLocksEvenly) {
  on_four_ranks([](shm_participant& me) {
    const lock_table<lock::d_mcs, shm::port> table(me, 10);
    ASSERT_EQ(table.size(), 10u);
    std::vector<int> of_rank(4);
    for (std::uint32_t i = 0; i < table.size(); ++i)
      ++of_rank[static_cast<std::size_t>(table.home_of(i))];
    EXPECT_EQ(of_rank, (std::vector<int>{3, 3, 2, 2}));
  });
}

// One rank writes a reference into a cell, and another finds the same lock with it.
TEST(LockTable, AReferenceTravels) {
  on_four_ranks([](shm_participant& me) {
    lock_table<lock::rma_rw, shm::port> table(me, 7);
    const auto cell = me.cells().take<rma::plain_cell>(1).at(0);
    rma::barrier all(me);
    if (me.rank() == 3) put_now(me.port(), cell, table.reference(5).word());
    all.arrive_and_wait();
    const auto named = lock_reference::from_word(get_now(me.port(), cell));
    EXPECT_EQ(named.home(), 1);
    EXPECT_EQ(&table.at(named), &table[5]);
  });
}

TEST(LockTable, NoTwoReferencesAreTheSameAndNoneIsNull) {
  on_four_ranks([](shm_participant& me) {
    const lock_table<lock::rma_rw, shm::port> table(me, 50);
    std::set<rma::word> seen{lock_reference().word()};
    for (std::uint32_t i = 0; i < table.size(); ++i)
      EXPECT_TRUE(seen.insert(table.reference(i).word()).second) << i;
  });
}

TEST(LockTable, RefusesWhatItDoesNotHave) {
  on_four_ranks([](shm_participant& me) {
    lock_table<lock::d_mcs, shm::port> table(me, 4);
    const lock_reference third = table.reference(2);
    const lock_reference elsewhere(third.home() + 1, third.offset());
    const lock_reference beyond(third.home(), words - 1);
    EXPECT_THROW(static_cast<void>(table.at(elsewhere)), std::out_of_range);
    EXPECT_THROW(static_cast<void>(table.at(beyond)), std::out_of_range);
    EXPECT_THROW(static_cast<void>(table.at({})), std::out_of_range);
    EXPECT_THROW((lock_table<lock::d_mcs, shm::port>(me, 0)), std::invalid_argument);
    EXPECT_THROW((lock_table<lock::d_mcs, shm::port>(me, words)), std::length_error);
  });
}

TEST(LockTable, SaysHowManyWordsItTakes) {
  on_four_ranks([](shm_participant& me) {
    const std::uint32_t before = me.cells().used();
    const lock_table<lock::rma_rw, shm::port> table(me, 20);
    const std::uint32_t took = me.cells().used() - before;
    const std::uint32_t said = lock_table<lock::rma_rw, shm::port>::words(me.machine(), 20);
    EXPECT_GE(said, took);
    EXPECT_LE(said, took + 2 * rma::line_words);
  });
}

// Every lock guards a counter of its own; increments are not atomic.
TEST(LockTable, EachLockExcludesByItself) {
  on_four_ranks([](shm_participant& me) {
    constexpr std::uint32_t locks = 5;
    constexpr std::uint32_t rounds = 400;
    lock_table<lock::d_mcs, shm::port> table(me, locks);
    const auto counters = me.cells().take<rma::plain_cell>(locks).at(0);
    rma::barrier all(me);
    all.arrive_and_wait();
    for (std::uint32_t i = 0; i < rounds; ++i) {
      const std::uint32_t which = (i + static_cast<std::uint32_t>(me.rank())) % locks;
      const std::scoped_lock hold(table[which]);
      put_now(me.port(), counters + which, get_now(me.port(), counters + which) + 1);
    }
    all.arrive_and_wait();
    for (std::uint32_t i = 0; i < locks; ++i)
      EXPECT_EQ(get_now(me.port(), counters + i), 4 * rounds / locks);
  });
}

}  // namespace
}  // namespace lockflight
