// Holds that are ended for their holders, and acquires that the caller's program ends. The searches
// are large, so a run that is not long tries random schedules; the mutants of robust.mutants show
// that a search of all finds what is broken here soon.
#include "tests/lab/check/interrupts.hpp"

#include <gtest/gtest.h>

#include <cstdio>

#include "lab/check/check.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/spin.hpp"
#include "tests/support/long_tests.hpp"

namespace lockflight::check {
namespace {

void expect_unbroken(const subject& lock, request asked) {
  asked.until.shorten = false;
  asked.until.most_states = 10'000'000;
  asked.random = !test::long_tests();
  asked.random_until.executions = 2'000;
  const report made = run(lock, asked);
  EXPECT_NE(made.found.what, verdict::violation) << trace_table(made);
  std::printf("%s: %s, %d stops: %llu states\n", made.asked.lock.c_str(),
              describe_parts(made).c_str(), asked.how.stops,
              static_cast<unsigned long long>(made.found.states));
}

TEST(abandoned, holds_are_ended_for_their_holders) {
  for (const char* const name : {"spin", "d-mcs", "rma-mcs", "dq-fair", "flight"}) {
    request r;
    r.lock = name;
    r.writers = r.abandoners = 1;
    r.how.deaths = 1;
    expect_unbroken(subject_named(name), r);
  }
}

TEST(abandoned, records_are_taken_back_for_the_next_round) {
  request r;
  r.writers = 0;
  r.abandoners = 2;
  r.rounds = 2;
  r.how.stops = 1;
  expect_unbroken(subject_named("d-mcs"), r);
}

TEST(abandoned, only_robust_locks_have_such_holds) {
  request r;
  r.lock = "d-mcs";
  r.abandoners = 1;
  EXPECT_THROW(static_cast<void>(run(r)), bad_request);
}

TEST(interrupted, acquires_leave_a_lock_that_others_get) {
  request r;
  r.writers = r.timed_writers = 1;
  r.how.deaths = 1;
  expect_unbroken(interrupted_subject<lock::spin>(), r);
  expect_unbroken(interrupted_subject<lock::d_mcs>(), r);
  expect_unbroken(interrupted_subject<lock::flight>(), r);
  r.how.deaths = 0;
  r.how.stops = 1;
  expect_unbroken(interrupted_subject<lock::d_mcs>(), r);
}

TEST(interrupted, acquires_of_two_at_once) {
  request r;
  r.writers = 0;
  r.timed_writers = 2;
  r.how.deaths = 1;
  expect_unbroken(interrupted_subject<lock::d_mcs>(), r);
}

}  // namespace
}  // namespace lockflight::check
