// dq-fair's tokens: counters that wrap around, clients that come and go, and more clients than a
// token can name.
#include <gtest/gtest.h>

#include <string>

#include "counts.hpp"
#include "guarded.hpp"
#include "lockflight/lock/dq_fair.hpp"

namespace lockflight::test {
namespace {

using rma::topology;
using rma::word;
using dq_fair = placed<lock::dq_fair>;

/// Puts the lock into the state that it has after `requests` requests, all of them released.
void start_after(counted_participant& me, const dq_fair& l, word requests) {
  for (const auto cell : {l.cells.drawn, l.cells.tail})
    rma::put_now(uncounted(me), cell, lock::token_format({}).of(requests));
}

// 4 ranks lock across the moment at which the 32 bits wrap around, and across a few more requests.
TEST(dq_fair, excludes_when_the_counter_wraps_around) {
  constexpr word wrap = word{1} << 32;
  constexpr word rounds = 200;
  for (const topology& machine : {topology::flat(4), topology::balanced({2, 2})})
    on_every_rank(machine, [](counted_participant& me) {
      rma::barrier all(me);
      dq_fair l(me);
      guarded data(me, 0);
      if (me.rank() == 0) start_after(me, l, wrap - 2 * rounds);
      all.arrive_and_wait();
      for (word i = 0; i < rounds; ++i) {
        if (i % 4 != 0) {
          l.lock.lock();
        } else if (!l.lock.try_lock()) {
          continue;
        }
        data.write([] {});
        l.lock.unlock();
      }
      all.arrive_and_wait();
      require(rma::get_now(me.port(), l.cells.drawn) < lock::token_format({}).of(4 * rounds),
              "the counter has wrapped around");
      if (me.rank() == 0) require(l.lock.try_lock(), "and the lock is free");
    });
}

TEST(dq_fair, costs_the_same_when_the_counter_wraps_around) {
  on_every_rank(topology::balanced({2, 1}), [](counted_participant& me) {
    rma::barrier both(me);
    dq_fair l(me);
    if (me.rank() == 0) start_after(me, l, (word{1} << 32) - 1);
    both.arrive_and_wait();
    if (me.rank() == 0) return;
    for (int i = 0; i < 2; ++i) {
      costs(me, "lock", {.fetch_add = 1, .cas = 1, .flush = 2}, [&] { l.lock.lock(); });
      costs(me, "unlock", {.cas = 1, .flush = 1, .load = 1}, [&] { l.lock.unlock(); });
    }
  });
}

// A client is a handle: it joins when it is made and leaves when it is dropped, while others lock.
TEST(dq_fair, clients_join_and_leave) {
  on_every_rank(topology::balanced({2, 2}), [](counted_participant& me) {
    rma::barrier all(me);
    const dq_fair first(me);
    guarded data(me, 0);
    for (int i = 0; i < 50; ++i) {
      lock::dq_fair<counted_port> client(me, first.cells);
      client.lock();
      data.write([] {});
      client.unlock();
    }
    all.arrive_and_wait();
    require(data.look([] {}) == 200, "nobody was lost");
  });
}

// ---- the format ----

constexpr lock::token_format usual{{}};
constexpr rma::plain_cell last_line{rma::rank_t{(1 << 26) - 1}, 32 * rma::line_words};
static_assert(usual.node(usual.of(~word{0}) | usual.identity(last_line)) == last_line);
static_assert(usual.same_counter(usual.of(7) | usual.identity(last_line), usual.of(7)));
static_assert(!usual.same_counter(usual.of(7), usual.of(8)));
static_assert(usual.of(word{1} << 32) == usual.of(0), "32 bits count");
static_assert(usual.is_nobodys(usual.of(7)));
static_assert(!usual.is_nobodys(usual.of(7) | usual.identity({0, rma::line_words})));

static_assert(lock::dq_fair<shm::port>::most_ranks({}) == 1 << 26, "named by 26 bits");
static_assert(lock::dq_fair<shm::port>::most_ranks({.counter_bits = 3}) == 8, "told apart by 3");

TEST(dq_fair, refuses_more_clients_than_a_token_can_name) {
  const auto make_on = [](int ranks) -> std::string {
    try {
      shm::run({.machine = topology::flat(ranks), .threads = true}, [](auto& me) {
        const auto where = lock::dq_fair<shm::port>::cells::place(me.cells(), me.machine(), {}, 0);
        lock::dq_fair<shm::port> lock(me, where, {.counter_bits = 3});
      });
    } catch (const shm::rank_failed& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(make_on(8), "");
  const std::string refused = make_on(9);
  for (const char* const part : {"counter_bits=3", "9 ranks", "accepted: 1 to 8"})
    EXPECT_NE(refused.find(part), std::string::npos) << refused;
}

}  // namespace
}  // namespace lockflight::test
