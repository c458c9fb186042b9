// An operation of the port throws in the middle of an acquire or a release of a robust lock: the
// handle holds nothing then and can be used again, and the others get the lock (robust.hpp). The
// searches are of random schedules, since an exception is an object outside of the stacks that a
// search of all schedules copies. tests/lab/mutants/failing.mutants has what they find.
#include <gtest/gtest.h>

#include <cstdint>

#include "lab/check/check.hpp"
#include "lab/check/program/subject.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/spin.hpp"
#include "tests/lab/check/failing.hpp"
#include "tests/support/long_tests.hpp"

namespace lockflight::check {
namespace {

template <template <class> class Inside>
void expect_unbroken_whichever_throws(request r, std::uint64_t executions) {
  constexpr std::int64_t most_operations_without_waits = 60;
  r.timed_writers = 1;
  r.how.deaths = 1;
  r.until.shorten = false;
  r.random = true;
  r.random_until.executions = test::long_tests() ? 50 * executions : executions;
  for (std::int64_t failing = 1; failing <= most_operations_without_waits; ++failing) {
    r.set["failing"] = failing;
    const report made = run(failing_subject<Inside>(), r);
    EXPECT_NE(made.found.what, verdict::violation) << failing << "\n" << trace_table(made);
  }
}
template <template <class> class Inside>
void expect_unbroken_whichever_throws() {
  request r;
  r.writers = 1;
  expect_unbroken_whichever_throws<Inside>(r, 100);
}

TEST(failing_port, breaks_no_robust_spin) { expect_unbroken_whichever_throws<lock::spin>(); }
TEST(failing_port, breaks_no_robust_d_mcs) { expect_unbroken_whichever_throws<lock::d_mcs>(); }
TEST(failing_port, breaks_no_robust_flight) { expect_unbroken_whichever_throws<lock::flight>(); }

// Of three, one dies, one repairs that, and another one has the right to repair and finds nothing
// to do.
TEST(failing_port, breaks_no_robust_d_mcs_beside_repairs) {
  request r;
  r.writers = 2;
  r.random_until.depth = 4;
  expect_unbroken_whichever_throws<lock::d_mcs>(r, 60);
}

// The generation is replaced at once: participants that only try do not wait until they may
// withdraw a grant.
TEST(release_that_is_given_up, leaves_the_lock_free) {
  request r;
  r.try_writers = 1;
  r.writers = 0;
  r.rounds = 2;
  r.how.deaths = 1;
  r.until.shorten = false;
  const subject lock = make_subject_of<never_released>();
  const report made = run(lock, r);
  EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
}

}  // namespace
}  // namespace lockflight::check
