// What flight-rw makes of a turn of writers, number by number.
#include "lockflight/lock/flight_rw/turn_policy.hpp"

#include <gtest/gtest.h>

namespace lockflight::lock {
namespace {

constexpr turn_policy adaptive{
    .t_w = 256, .adapts_t_w = true, .adapts_cells = true, .worth = 32, .reads = 3, .against = 3};

ended_turn turn(rma::word writers, rma::word waiting = 16) {
  return {.writers = writers, .waiting = waiting, .cells = 4};
}

TEST(turn_policy, what_is_not_adaptive_stays_as_it_is) {
  for (const rma::word writers : {1u, 128u, 4'000u}) {
    const gate after = turn_policy{.t_w = 256}.adapted(gate{}, turn(writers, 0));
    EXPECT_EQ(after.bits(), gate{}.bits());
  }
  EXPECT_EQ((turn_policy{.t_w = 256}).most_writers(gate{}), 256u);
}

// The bound that readers are promised is the parameter.
TEST(turn_policy, t_w_in_force_is_never_above_t_w) {
  for (const rma::word t_w : {1u, 2u, 3u, 256u, 4'000u}) {
    turn_policy of = adaptive;
    of.t_w = t_w;
    for (rma::word halved = 0; halved < 16; ++halved)
      for (const rma::word writers : {1u, 2u, 64u, 128u, 4'000u})
        for (const rma::word waiting : {0u, 1u, 16u}) {
          const gate before = gate{}.with_halved(halved);
          EXPECT_LE(of.most_writers(of.adapted(before, turn(writers, waiting))), t_w);
        }
  }
}

// 4 cells to look at are worth 128 writers.
TEST(turn_policy, long_turns_are_halved_and_short_ones_doubled_up_to_t_w) {
  gate now;
  now = adaptive.adapted(now, turn(256));
  EXPECT_EQ(adaptive.most_writers(now), 128u);
  now = adaptive.adapted(now, turn(128));
  EXPECT_EQ(adaptive.most_writers(now), 64u);
  now = adaptive.adapted(now, turn(64));
  EXPECT_EQ(adaptive.most_writers(now), 64u) << "neither long nor short";
  now = adaptive.adapted(now, turn(30));
  EXPECT_EQ(adaptive.most_writers(now), 64u) << "no writer was there to follow";
  now = adaptive.adapted(now.with_halved(3), turn(32));
  EXPECT_EQ(adaptive.most_writers(now), 64u);
  for (int i = 0; i < 3; ++i) now = adaptive.adapted(now, turn(200, 0));
  EXPECT_EQ(adaptive.most_writers(now), 256u) << "nobody waits to read";
}

TEST(turn_policy, a_turn_has_one_writer_at_least) {
  gate now;
  for (int i = 0; i < 20; ++i) now = adaptive.adapted(now, turn(4'000));
  EXPECT_EQ(adaptive.most_writers(now), 1u);
}

TEST(turn_policy, cells_change_after_three_turns_that_speak_against_them) {
  gate now;
  const auto phase_after = [&](rma::word waiting) {
    return now = adaptive.adapted(now.next_phase(), turn(8, waiting));
  };
  phase_after(23), phase_after(23), phase_after(24);
  phase_after(23);
  EXPECT_FALSE(phase_after(23).gathered()) << "not three in a row";
  phase_after(23);
  EXPECT_TRUE(now.gathered());
  EXPECT_TRUE(now.moved());
  EXPECT_TRUE(phase_after(39).gathered()) << "neither few nor many";
  EXPECT_FALSE(now.moved()) << "of that phase alone";
  phase_after(40), phase_after(40);
  EXPECT_TRUE(now.gathered());
  EXPECT_FALSE(phase_after(40).gathered());
  EXPECT_TRUE(now.moved());
}

TEST(turn_policy, closing_and_opening_again_changes_nothing_else) {
  const gate now = gate{}.with_halved(5).with_against(2).in_the_other_cells().with_quiet(1);
  const gate again = now.as(gate::state::closed).as(gate::state::open);
  EXPECT_EQ(again.bits(), now.bits());
  EXPECT_EQ(now.halved(), 5u);
  EXPECT_EQ(now.quiet(), 1u);
  EXPECT_EQ(now.epoch(), 0u);
  EXPECT_EQ(now.next_phase().next_phase().next_phase().next_phase().epoch(), 0u);
}

}  // namespace
}  // namespace lockflight::lock
