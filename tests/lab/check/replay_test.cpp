// A counterexample can be replayed, and a string that cannot be read or has become stale is
// refused.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "lab/check/check.hpp"
#include "tests/support/damaged.hpp"

namespace lockflight::check {
namespace {

request listing_to_replay() {
  request r;
  r.lock = "rma-rw-listing";
  r.writers = r.readers = 1;
  r.levels = "2";
  r.until.shorten = engine::can_copy_stacks();  // a sanitizer takes its time
  return r;
}

TEST(replay, repeats_the_counterexample_exactly) {
  const report made = run(listing_to_replay());
  ASSERT_EQ(made.found.what, verdict::violation);
  const report again = replay(made.replay);
  EXPECT_EQ(again.found.what, verdict::violation);
  EXPECT_EQ(trace_table(again), trace_table(made));
}

TEST(replay, repeats_one_with_settings_and_switches) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "finding it needs states to go back to";
  request r = listing_to_replay();
  r.set = {{"mend_1", 1}, {"mend_3", 1}, {"T_R", 2}};
  r.rounds = 3;
  r.how.store_buffering = false;
  const report made = run(r);
  ASSERT_EQ(made.found.what, verdict::violation);
  EXPECT_EQ(trace_table(replay(made.replay)), trace_table(made));
}

TEST(replay, says_what_changed_when_the_string_is_stale) {
  const std::string good = run(listing_to_replay()).replay;
  const std::string mended = good + "bbbbbbbb";
  // Another lock in the same schedule: sooner or later a step cannot happen.
  std::string other = good;
  other.replace(other.find("rma-rw-listing"), 14, "rma-rw");
  try {
    const report made = replay(other);
    EXPECT_EQ(made.found.what, verdict::bound) << "rma-rw has no violation to find";
  } catch (const bad_request& e) {
    EXPECT_NE(std::string(e.what()).find("has changed: step"), std::string::npos);
  }
  EXPECT_EQ(replay(mended).found.what, verdict::violation) << "what comes after does not matter";
}

std::string refusal_of(const std::string& text) {
  try {
    static_cast<void>(replay(text));
  } catch (const bad_request& e) {
    return e.what();
  }
  return "accepted";
}

TEST(replay, refuses_what_it_cannot_read_and_says_which_part) {
  const std::string good = run(listing_to_replay()).replay;
  const auto with = [&](const std::string& part, const std::string& instead) {
    std::string bad = good;
    return bad.replace(bad.find(part), part.size(), instead);
  };
  const auto expect = [](const std::string& text, const std::string& part) {
    const std::string said = refusal_of(text);
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_NE(said.find("accepted: "), std::string::npos) << said;
  };
  expect("", "cannot read ''");
  expect("nonsense", "'nonsense'");
  expect("lock=d-mcs", "no rounds= in it");
  expect(with("writers=1", "writers=one"), "'one'");
  expect(with("lock=rma-rw-listing", "lock=nobody"), "--lock 'nobody'");
  expect(with("levels=2", "levels=3"), "--levels 3 has 3 ranks");
  expect(with("levels=2", "levels=1x1x1x1x2"), "--levels 1x1x1x1x2");
  expect(with("set=", "set=T_X:1"), "T_X");
  expect(with("off=", "off=q"), "'q'");
  expect(with("steps=", "steps=?"), "'?");
}

// The smallest counterexample: no participant plays a round, and the lock is not free in the end.
TEST(replay, repeats_one_in_which_nobody_plays) {
  const std::string text =
      "lock=d-mcs;writers=1;readers=0;try_writers=0;try_readers=0;rounds=0;levels=1;node_level=0;"
      "retries=2;off=;set=;steps=aAaaa";
  const report made = replay(text);
  EXPECT_EQ(made.asked.rounds_of, std::vector<int>{0});
  EXPECT_EQ(made.found.schedule.size(), 4u);
  EXPECT_FALSE(made.found.broken);
}

// Whatever the damage: a trace or one line, never a crash or a hang.
TEST(replay, survives_damaged_strings) {
  const std::string good = run(listing_to_replay()).replay;
  std::minstd_rand random(1);
  int refused = 0;
  const int times = engine::can_copy_stacks() ? 5000 : 500;
  for (int i = 0; i < times; ++i) {
    try {
      static_cast<void>(replay(test::damaged(good, random)));
    } catch (const bad_request& e) {
      ++refused;
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(refused, times / 5);
}

}  // namespace
}  // namespace lockflight::check
