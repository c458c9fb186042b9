// Whether a participant can wait for ever although every participant makes progress. Participants
// come without end, so a verdict here holds for any number of rounds. The number of states is not
// pinned: it depends on what compilers leave on a stack.
#include "lab/check/search/starvation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/check/check.hpp"
#include "lab/check/program/subject.hpp"
#include "tests/lab/check/each_lock.hpp"
#include "tests/lab/check/one_target.hpp"
#include "tests/lab/check/server_guest.hpp"

namespace lockflight::check {
namespace {

struct watched_lock {
  const char* lock;
  watched who;
  int writers, readers, try_writers, try_readers;
  const char* levels;
  settings set;

  [[nodiscard]] request asked() const {
    request r;
    r.lock = lock;
    r.starvation = who;
    r.writers = writers, r.readers = readers;
    r.try_writers = try_writers, r.try_readers = try_readers;
    r.levels = levels;
    r.set = set;
    return r;
  }
};

void PrintTo(const watched_lock& w, std::ostream* out) {
  *out << w.lock << " " << name_of(w.who) << ": " << w.writers << "w" << w.readers << "r"
       << w.try_writers << "tw" << w.try_readers << "tr on " << w.levels;
}

class starvation_free : public testing::TestWithParam<watched_lock> {};

TEST_P(starvation_free, everybody_gets_through) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  const report made = run(GetParam().asked());
  EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
  EXPECT_GT(made.found.states, 100u);
  EXPECT_EQ(made.replay, "");
}

// Starvation that a lock's header allows. It is found, described and replayed.
class starves : public testing::TestWithParam<watched_lock> {};

TEST_P(starves, and_it_is_told_how) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  const report made = run(GetParam().asked());
  ASSERT_EQ(made.found.what, verdict::violation);
  EXPECT_EQ(made.found.broken->property, "starvation");
  EXPECT_GT(made.found.repeats, 0u);
  EXPECT_NE(trace_table(made).find("again and again:"), std::string::npos);
  const report again = replay(made.replay);
  ASSERT_TRUE(again.found.broken) << made.replay;
  EXPECT_EQ(again.found.broken->detail, made.found.broken->detail);
  EXPECT_EQ(trace_table(again), trace_table(made));
}

using enum watched;

// clang-format off
[[nodiscard]] std::vector<watched_lock> rows_that_end() {
  return {
    //           lock           who      w  r tw tr levels set
    watched_lock{"d-mcs",       all,     3, 0, 0, 0, "3",   {}},
    watched_lock{"d-mcs",       all,     2, 0, 1, 0, "3",   {}},
    watched_lock{"rma-mcs",     all,     3, 0, 0, 0, "3x1", {}},
    watched_lock{"rma-mcs",     all,     4, 0, 0, 0, "2x2", {}},
    watched_lock{"alock",       all,     2, 0, 0, 0, "2x1", {}},
    watched_lock{"alock",       all,     3, 0, 0, 0, "3x1", {}},
    watched_lock{"alock",       all,     3, 0, 0, 0, "3x1", {{"remote_budget", 2}}},
    watched_lock{"alock",       writers, 2, 0, 1, 0, "3x1", {}},
    watched_lock{"alock",       tries,   2, 0, 1, 0, "3x1", {}},
    watched_lock{"farlock",     all,     2, 0, 0, 0, "2x1", {}},
    watched_lock{"farlock",     writers, 1, 0, 1, 0, "2x1", {}},
    watched_lock{"spin",        leaving, 3, 0, 0, 0, "3",   {}},
    watched_lock{"dq",          leaving, 3, 0, 0, 0, "3",   {}},
    watched_lock{"fompi-rw",    leaving, 1, 2, 0, 0, "3",   {}},
    watched_lock{"rma-rw",      writers, 1, 1, 0, 0, "2x1", {}},
    watched_lock{"mcs-rw-rp",   readers, 2, 1, 0, 0, "3",   {}},
    watched_lock{"mcs-rw-rp",   leaving, 1, 2, 0, 0, "3",   {}},
    watched_lock{"mcs-rw-wp",   writers, 2, 1, 0, 0, "3",   {}},
    watched_lock{"mcs-rw-wp",   leaving, 2, 1, 0, 0, "3",   {}},
    watched_lock{"mcs-rw-wp",   leaving, 1, 1, 0, 1, "3",   {}},
    watched_lock{"mcs-rw-wp-listing", writers, 2, 1, 0, 0, "3",   {}},
    watched_lock{"mcs-rw-wp-listing", leaving, 2, 1, 0, 0, "3",   {}},
    watched_lock{"mcs-rw-wp-listing", leaving, 1, 2, 0, 0, "3",   {}},
    watched_lock{"alock-listing",     all,     2, 0, 0, 0, "2x1", {}},
    watched_lock{"mcs-listing", leaving, 3, 0, 0, 0, "3",   {}},
    watched_lock{"dq-fair",     all,     2, 0, 0, 0, "2x1", {}},
    watched_lock{"dlm-server",  all,     3, 0, 0, 0, "3",   {}},
    watched_lock{"dlm-server",  tries,   1, 0, 1, 0, "2",   {}},
    watched_lock{"msg",         all,     1, 1, 0, 0, "2",   {}},
    watched_lock{"msg-deferred", all,    1, 1, 0, 0, "2",   {}},
    watched_lock{"mcs-rw-fair", all,     2, 1, 0, 0, "3x1", {}},
    watched_lock{"mcs-rw-fair", all,     1, 2, 0, 0, "3",   {}},
    watched_lock{"mcs-rw-fair", all,     1, 1, 1, 0, "3",   {}},
    watched_lock{"mcs-rw-fair", all,     1, 1, 0, 1, "3",   {}},
    watched_lock{"dslr",        all,     1, 1, 0, 0, "2x1", {}},
    watched_lock{"dslr",        all,     2, 0, 0, 0, "2",   {}},
    watched_lock{"dslr",        leaving, 0, 2, 0, 0, "2",   {}},
    watched_lock{"shiftlock",   all,     1, 1, 0, 0, "2x1", {}},
    watched_lock{"shiftlock",   all,     1, 0, 1, 0, "2",   {}},
    watched_lock{"flight",      all,     2, 0, 0, 0, "2",   {}},
    watched_lock{"flight",      all,     3, 0, 0, 0, "3x1", {}},
    watched_lock{"flight",      all,     2, 0, 1, 0, "3x1", {}},
    watched_lock{"flight-rw",   all,     1, 1, 0, 0, "2x1", {}},
    watched_lock{"flight-rw",   all,     1, 1, 0, 0, "2",   {}}};
}

[[nodiscard]] std::vector<watched_lock> rows_that_starve() {
  return {
    watched_lock{"spin",        writers, 2, 0, 0, 0, "2",   {}},
    watched_lock{"dq",          writers, 2, 0, 0, 0, "2",   {}},
    watched_lock{"fompi-rw",    writers, 1, 1, 0, 0, "2",   {}},
    watched_lock{"fompi-rw",    readers, 1, 1, 0, 0, "2",   {}},
    watched_lock{"rma-rw",      readers, 1, 1, 0, 0, "2",   {}},
    watched_lock{"mcs-rw-rp",   writers, 1, 2, 0, 0, "3",   {}},
    watched_lock{"mcs-rw-wp",   readers, 2, 1, 0, 0, "3",   {}},
    watched_lock{"mcs-rw-fair", tries,   1, 0, 0, 2, "3",   {}},
    // A reader draws while a counter wraps around, and polls only while it wraps around again.
    watched_lock{"dslr",        readers, 0, 2, 0, 0, "2",   {}},
    watched_lock{"mcs-rw-wp-listing", readers, 2, 1, 0, 0, "3", {}},
    // The swap that is a loop of compare-and-swaps fails again and again, in either cohort of ALock.
    watched_lock{"mcs-listing", writers, 2, 0, 0, 0, "2",   {}},
    watched_lock{"alock-listing",     all,     2, 0, 0, 0, "2",   {}},
    watched_lock{"alock-listing",     all,     3, 0, 0, 0, "3x1", {}}};
}
// clang-format on

INSTANTIATE_TEST_SUITE_P(small_bounds, starvation_free, testing::ValuesIn(rows_that_end()));
INSTANTIATE_TEST_SUITE_P(as_documented, starves, testing::ValuesIn(rows_that_starve()));

// A lock without a row: its releases end, and no waiter starves if the lock says how often later
// participants overtake it. The search of a lock whose words count without end has no end either.
TEST(starvation, locks_without_rows_keep_what_they_promise) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  std::vector<watched_lock> rows = rows_that_end();
  std::ranges::copy(rows_that_starve(), std::back_inserter(rows));
  for (const subject* const lock : locks_without(rows)) {
    request r;
    r.lock = lock->about.name;
    r.writers = lock->shared ? 1 : 2;
    r.readers = lock->shared ? 1 : 0;
    r.until.most_states = 20'000;
    r.starvation = lock->bounds_overtaking ? watched::all : watched::leaving;
    const report made = run(r);
    EXPECT_NE(made.found.what, verdict::violation) << trace_table(made);
  }
}

// A waiter for its group is in a queue, and a participant that finds the other group in withdraws
// once.
TEST(starvation, nobody_waits_for_ever_for_a_window) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  const subject window = make_subject<lock::group_window<port>>();
  for (const int writers : {1, 2}) {
    request r;
    r.writers = writers;
    r.readers = 3 - writers;
    r.levels = "3x1";
    r.starvation = watched::all;
    const report made = run(window, r);
    EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
    EXPECT_GT(made.found.states, 1000u);
  }
}

// A global lock that prefers its readers: lock_all gets through and overtakes the exclusive locks.
TEST(starvation, exclusive_locks_wait_for_a_global_lock) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  const subject window = make_subject<lock::global_window<port>>();
  request r;
  r.writers = 1;
  r.readers = 3;  // ranks 1 and 3 lock all, rank 2 shares the target
  r.levels = "4";
  r.starvation = watched::writers;
  const report made = run(window, r);
  ASSERT_EQ(made.found.what, verdict::violation);
  EXPECT_EQ(made.found.broken->property, "starvation");
  r.writers = 2;
  r.readers = 1;
  r.levels = "3";
  r.starvation = watched::leaving;
  EXPECT_EQ(run(window, r).found.what, verdict::ok);
}

// A client that leaves the queue after a poll harms no other.
TEST(starvation, clients_of_a_server_come_and_go) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  const subject server = make_subject<lock::impatient<port>>();
  request r;
  r.writers = 2;
  r.try_writers = 1;
  r.levels = "3";
  for (const watched who : {watched::all, watched::tries}) {
    r.starvation = who;
    const report made = run(server, r);
    EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
    EXPECT_GT(made.found.states, 1000u);
  }
}

TEST(starvation, rules_are_checked_for_any_number_of_rounds) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  request r;
  r.lock = "rma-rw-listing";
  r.writers = r.readers = 1;
  r.starvation = watched::all;
  const report made = run(r);
  ASSERT_EQ(made.found.what, verdict::violation);
  EXPECT_EQ(made.found.broken->property, "mutual exclusion");
  EXPECT_EQ(replay(made.replay).found.broken->detail, made.found.broken->detail);
}

// The same steps, but some cannot be repeated, or a participant that owes a step does not take it.
TEST(starvation, only_a_fair_repetition_counts) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  request r;
  r.lock = "spin";
  r.starvation = watched::all;
  const report made = run(r);
  ASSERT_TRUE(made.found.broken);
  const std::string repeats = "repeats=" + std::to_string(made.found.repeats);
  const auto with = [&](const std::string& other) {
    std::string text = made.replay;
    return text.replace(text.find(repeats), repeats.size(), other);
  };
  EXPECT_EQ(replay(with(repeats)).found.what, verdict::violation);
  EXPECT_EQ(replay(with("repeats=1")).found.what, verdict::bound);
  EXPECT_EQ(replay(with("repeats=10000")).found.what, verdict::bound);

  // Rank 1 comes and goes, and rank 0 does not take its next step although it could.
  const report unfair = replay(
      "lock=d-mcs;writers=2;readers=0;try_writers=0;try_readers=0;rounds=1;levels=2;node_level=0;"
      "retries=2;off=;set=;starvation=all;repeats=5;steps=abBabbBa" +
      std::string("bBabbBa"));
  EXPECT_EQ(unfair.found.what, verdict::bound);
}

TEST(starvation, what_stops_early_is_a_bound) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  request r;
  r.lock = "rma-mcs";
  r.writers = 4;
  r.starvation = watched::all;
  r.until.most_states = 1000;
  const report made = run(r);
  EXPECT_EQ(made.found.what, verdict::bound);
  EXPECT_EQ(to_json(made).at("starvation"), "all");
}

TEST(starvation, says_what_it_accepts) {
  const auto message = [](const request& r) -> std::string {
    try {
      static_cast<void>(run(r));
    } catch (const bad_request& e) {
      return e.what();
    }
    return "accepted";
  };
  request r;
  r.starvation = watched::all;
  r.lock = "msg-deferred";
  r.starvation = watched::leaving;
  EXPECT_NE(message(r).find("does all of an epoch at its release"), std::string::npos);
  r.lock = "d-mcs";
  r.starvation = watched::tries;
  EXPECT_NE(message(r).find("--starvation tries"), std::string::npos);
  r.starvation = watched::all;
  r.random = true;
  EXPECT_NE(message(r).find("not with --random"), std::string::npos);
  EXPECT_THROW(static_cast<void>(watched_named("nobody")), bad_request);
}

}  // namespace
}  // namespace lockflight::check
