// What flight takes in virtual time, where posts keep their order and where they do not.
#include "lockflight/lock/flight.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/sim/run.hpp"
#include "lockflight/rma/participant.hpp"
#include "tests/support/made_up_machine.hpp"

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
    EXPECT_LT(part_passed_by(turns(node, {}, stay, 800)), 0.25);
  }
}

/// How often a rank had the lock, at most, while another one waited for it.
std::size_t most_overtaken(const std::vector<turn>& order) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::size_t overtook = 0;
    for (std::size_t before = 0; before < i; ++before)
      if (order[before].rank != order[i].rank && order[before].asked > order[i].asked) ++overtook;
    most = std::max(most, overtook);
  }
  return most;
}

// Where holders stay long and come again at once, the polling head rarely meets a free word.
TEST(flight, patience_ends_the_overtaking_by_long_holders) {
  const rma::topology node = rma::topology::flat(2);
  constexpr std::uint64_t stays = 20'000;
  for (const std::int64_t handovers : {0, 16}) {
    SCOPED_TRACE(handovers);
    lock::flight_parameters set{.barge = 10'000, .handovers = handovers};
    if (handovers == 0) {
      EXPECT_GT(most_overtaken(turns(node, set, stays, 0)), 8u);
    }
    set.patience = 50'000;
    // Two stays fit into the patience. One more may have begun before it is over, and the next
    // holder may not see the mark in time.
    EXPECT_LE(most_overtaken(turns(node, set, stays, 0)), 4u);
  }
}

}  // namespace
}  // namespace lockflight::test
