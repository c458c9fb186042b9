// What a gate of flight-rw says, whatever the rest of its word is.
#include "lockflight/lock/flight_rw/gate.hpp"

#include <gtest/gtest.h>

namespace lockflight::test {
namespace {

using lock::gate;
using state = gate::state;

// Writers do not wait for readers that have parked behind a gate that is not in use, so it lets no
// reader in, whatever epoch it has.
TEST(gate, lets_in_at_odd_distances_where_writers_wait) {
  for (const state s :
       {state::open, state::closed, state::idle, state::opening, state::unlisted, state::claimed}) {
    const bool is_in_use = s == state::open || s == state::closed;
    gate now = gate{}.as(s);
    for (rma::word epoch = 0; epoch < 4; ++epoch, now = now.next_phase(false).as(s)) {
      ASSERT_EQ(now.epoch(), epoch);
      for (rma::word parked_at = 0; parked_at < 4; ++parked_at)
        EXPECT_EQ(now.lets_in(parked_at), is_in_use && (epoch + parked_at) % 2 == 1)
            << "state " << static_cast<int>(s) << ", epoch " << epoch << ", parked at "
            << parked_at;
    }
  }
}

}  // namespace
}  // namespace lockflight::test
