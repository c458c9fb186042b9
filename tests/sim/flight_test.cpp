// What flight takes in virtual time, where posts keep their order and where they do not.
#include "lockflight/lock/flight.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockflight/rma/participant.hpp"
#include "sim/run.hpp"
#include "support/made_up_machine.hpp"

namespace lockflight::test {
namespace {

struct times {
  double acquire = 0;  // in nanoseconds
  double release = 0;
};

/// Of a free lock at rank 0, by rank 1 on another node.
times from_elsewhere(bool ordered_posts) {
  auto profile = made_up_machine();
  profile.nic.ordered_posts = ordered_posts;
  const rma::topology machine = rma::topology::balanced({2, 1});
  times took;
  sim::run_ports({.profile = profile, .machine = machine, .words_per_rank = 4096}, [&](sim::port&
                                                                                           port) {
    using flight = lock::flight<sim::port>;
    rma::participant<sim::port> me(port, 4096);
    flight l(me, flight::cells::place(me.cells(), machine, {}, 0));
    if (port.rank() == 0) return;
    // Once before, so that the node's own word is in the cache.
    l.lock();
    l.unlock();
    const sim::time_ps asked = port.now();
    l.lock();
    const sim::time_ps got = port.now();
    l.unlock();
    took = {static_cast<double>(got - asked) * 1e-3, static_cast<double>(port.now() - got) * 1e-3};
  });
  return took;
}

// made_up_machine(), in nanoseconds.
constexpr double post = 100, round_trip = 2 * (700 + 110) + 200, atomic = 50, complete = 30;
constexpr double swap_now = post + round_trip + atomic + complete;
constexpr double get_now = post + round_trip + complete;
constexpr double looks = 30;  // an atomic and some looks at what the node's cache holds

TEST(flight, from_elsewhere_takes_one_round_trip_where_posts_are_ordered) {
  // The get is the last to come.
  EXPECT_NEAR(from_elsewhere(true).acquire, post + get_now, looks);
  EXPECT_NEAR(from_elsewhere(false).acquire, swap_now + get_now, looks);
  EXPECT_NEAR(from_elsewhere(true).release, swap_now, looks);
  EXPECT_NEAR(from_elsewhere(false).release, swap_now, looks);
}

/// A rank that had the lock, and when it had asked for it.
struct turn {
  rma::rank_t rank;
  sim::time_ps asked;
};

/// Who had the lock one after the other, for so long each time, of ranks that all come again so
/// much later. In nanoseconds.
std::vector<turn> turns(const rma::topology& machine, const lock::flight_parameters& set,
                        std::uint64_t stays = 2'000, std::uint64_t is_away = 500) {
  auto profile = made_up_machine();
  profile.cores = 8;
  profile.sockets = 2;
  std::vector<turn> order;
  sim::run_ports({.profile = profile, .machine = machine, .words_per_rank = 4096},
                 [&](sim::port& port) {
                   using flight = lock::flight<sim::port>;
                   rma::participant<sim::port> me(port, 4096);
                   flight l(me, flight::cells::place(me.cells(), machine, set, 0), set);
                   for (int i = 0; i < 300; ++i) {
                     const sim::time_ps asked = port.now();
                     l.lock();
                     order.push_back({port.rank(), asked});
                     port.pause(stays);
                     l.unlock();
                     port.pause(is_away);
                   }
                 });
  return order;
}

/// How often the lock went from one socket's four ranks to the other's, and the longest that it
/// stayed, while all come yet.
struct stays {
  int acquires = 0;
  int changes = 0;
  int longest = 0;
};
stays of_sockets(const std::vector<turn>& order) {
  stays seen;
  int now = 0;
  for (std::size_t i = 0; i < order.size() / 2; ++i, ++seen.acquires) {
    const bool changes = i > 0 && order[i].rank / 4 != order[i - 1].rank / 4;
    if (changes) ++seen.changes;
    now = changes ? 1 : now + 1;
    seen.longest = std::max(seen.longest, now);
  }
  return seen;
}

// Sockets of one node, as a level of the machine and without.
TEST(flight, stays_on_a_socket_for_its_budget) {
  const rma::topology sockets = rma::topology::balanced({2, 4}, 1);
  constexpr int barge = 2;
  const stays without = of_sockets(turns(rma::topology::flat(8), {.barge = barge}));
  for (const int budget : {1, 4, 16}) {
    SCOPED_TRACE(budget);
    const stays with = of_sockets(turns(sockets, {.barge = barge, .local_budget = budget}));
    // An element's turns, each with some that come past, and some that come past the node's queue.
    EXPECT_LE(with.longest, budget * (barge + 1) + barge);
    EXPECT_LE(with.changes, with.acquires / budget);
    if (budget == 16) {
      EXPECT_LT(with.changes, without.changes / 3);
    }
  }
}

/// The part of the turns, while all come yet, that somebody waited for who had asked before.
double part_passed_by(const std::vector<turn>& order) {
  const std::size_t all = order.size() / 2;
  std::size_t passed = 0;
  for (std::size_t i = 0; i < all; ++i)
    if (std::any_of(order.begin() + static_cast<std::ptrdiff_t>(i), order.end(),
                    [&](const turn& later) { return later.asked < order[i].asked; }))
      ++passed;
  return static_cast<double>(passed) / static_cast<double>(all);
}

// To let others past its queue pays if they have the word in their cache, and not if each of them
// comes from elsewhere.
TEST(flight, lets_those_past_its_queue_who_come_again_at_once) {
  const rma::topology node = rma::topology::flat(8);
  for (const std::uint64_t stay : {0, 50, 100}) {
    SCOPED_TRACE(stay);
    EXPECT_GT(part_passed_by(turns(node, {}, stay, 0)), 0.9);
    EXPECT_LT(part_passed_by(turns(node, {}, stay, 800)), 0.15);
  }
}

}  // namespace
}  // namespace lockflight::test
