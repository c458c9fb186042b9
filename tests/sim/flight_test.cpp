// What flight takes in virtual time, where posts keep their order and where they do not.
#include "lockflight/lock/flight.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lockflight::test
