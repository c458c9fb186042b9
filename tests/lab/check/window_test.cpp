// The locks of a window under the checker: lock_all against locks on one target.
#include <gtest/gtest.h>

#include <string>

#include "lab/check/check.hpp"
#include "lab/check/program/subject.hpp"
#include "lockflight/lock/fompi_rw.hpp"
#include "tests/lab/check/one_target.hpp"
#include "tests/support/long_tests.hpp"

namespace lockflight::check {
namespace {

request asked(int writers, int readers, int rounds, const std::string& levels) {
  request r;
  r.writers = writers;
  r.readers = readers;
  r.rounds = rounds;
  r.levels = levels;
  return r;
}

/// Under a sanitizer each schedule is run from its beginning: most of the searching is left to the
/// other builds.
void expect_ok(const subject& lock, request what) {
  if (!engine::can_copy_stacks()) {
    if (what.writers > 1) return;
    what.rounds = 1;
  }
  const report made = run(lock, what);
  EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
  EXPECT_GT(made.found.states, 100u);
  if (!engine::can_copy_stacks() || what.writers + what.readers > 2) return;
  what.how.memory = memory_kind::views;
  const report with_views = run(lock, what);
  EXPECT_EQ(with_views.found.what, verdict::ok) << trace_table(with_views);
}

// Parts are dealt in turn: with one writer rank 1 reads, and locks all.
TEST(window, a_mutex_on_the_target) {
  const subject lock =
      make_subject<lock::one_target<lock::d_mcs, lock::strict_window_groups, port>>();
  expect_ok(lock, asked(1, 1, 2, "2"));
  expect_ok(lock, asked(1, 1, 2, "2x1"));
  expect_ok(lock, asked(2, 1, 1, "3"));
  expect_ok(lock, asked(1, 2, 1, "3x1"));
}

// As shipped: a waiter that has been at the head of the queue for long gives way, at any moment
// here.
TEST(window, a_head_of_the_queue_that_gives_way) {
  const subject lock = make_subject<lock::patient_window<port>>();
  expect_ok(lock, asked(1, 1, 1, "2"));
  expect_ok(lock, asked(1, 1, 1, "2x1"));
}

// In the second bound two that lock all end the bias together.
TEST(window, a_bias_for_exclusive_locks) {
  const subject lock = make_subject<lock::biased_window<port>>();
  expect_ok(lock, asked(1, 1, 2, "2"));
  expect_ok(lock, asked(1, 2, 1, "3"));
  if (test::long_tests()) expect_ok(lock, asked(2, 1, 1, "3"));
}

// As shipped.
TEST(window, who_ends_the_bias_gives_way) {
  const subject lock = make_subject<lock::patient_biased_window<port>>();
  expect_ok(lock, asked(1, 1, 1, "2"));
}

// A participant that is favoured, against a reader of the target and one that locks all. The
// mutants' tests also search some schedules of two writers, which are favoured in turn.
TEST(window, a_target_that_favours_a_writer) {
  expect_ok(make_subject<lock::favoured_window<port>>(), asked(1, 1, 1, "2"));
  expect_ok(make_subject<lock::favoured_window_locked_as_a_whole<port>>(), asked(1, 1, 1, "2"));
}

TEST(window, a_target_that_favours_a_writer_and_is_shared) {
  expect_ok(make_subject<lock::favoured_shared_window<port>>(), asked(1, 1, 1, "2"));
}

TEST(window, a_reader_writer_lock_on_the_target) {
  const subject lock =
      make_subject<lock::one_target<lock::fompi_rw, lock::strict_window_groups, port>>();
  expect_ok(lock, asked(1, 2, 1, "3"));
  expect_ok(lock, asked(1, 1, 2, "2x1"));
}

// One lock for the whole window beside the targets': the same promises.
TEST(window, locks_all_by_a_global_lock) {
  const subject lock = make_subject<lock::global_window<port>>();
  expect_ok(lock, asked(1, 1, 2, "2"));
  expect_ok(lock, asked(1, 1, 2, "2x1"));
  expect_ok(lock, asked(2, 1, 1, "3"));
  expect_ok(lock, asked(1, 2, 1, "3x1"));
}

TEST(window, a_global_lock_and_a_reader_writer_lock_on_the_target) {
  const subject lock = make_subject<lock::one_target<lock::fompi_rw, lock::window_global, port>>();
  expect_ok(lock, asked(1, 2, 1, "3"));
  expect_ok(lock, asked(1, 1, 2, "2x1"));
}

}  // namespace
}  // namespace lockflight::check
