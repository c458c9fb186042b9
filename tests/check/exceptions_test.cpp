// An operation of the port throws in the middle of an acquire or a release of a robust lock: the
// handle holds nothing then and can be used again, and the others get the lock (robust.hpp). The
// searches are of random schedules, since an exception is an object outside of the stacks that a
// search of all schedules copies. tests/mutants/failing.mutants has what they find.
#include <gtest/gtest.h>

#include <cstdint>

#include "check/check.hpp"
#include "check/failing.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/spin.hpp"
#include "support/long_tests.hpp"

namespace lockflight::check {
namespace {

template <template <class> class Inside>
void expect_unbroken_whichever_throws() {
  constexpr std::int64_t most_operations_without_waits = 60;
  request r;
  r.writers = r.timed_writers = 1;
  r.how.deaths = 1;
  r.until.shorten = false;
  r.random = true;
  r.random_until.executions = test::long_tests() ? 5'000 : 100;
  for (std::int64_t failing = 1; failing <= most_operations_without_waits; ++failing) {
    r.set["failing"] = failing;
    const report made = run(failing_subject<Inside>(), r);
    EXPECT_NE(made.found.what, verdict::violation) << failing << "\n" << trace_table(made);
  }
}

TEST(failing_port, breaks_no_robust_spin) { expect_unbroken_whichever_throws<lock::spin>(); }
TEST(failing_port, breaks_no_robust_d_mcs) { expect_unbroken_whichever_throws<lock::d_mcs>(); }
TEST(failing_port, breaks_no_robust_flight) { expect_unbroken_whichever_throws<lock::flight>(); }

}  // namespace
}  // namespace lockflight::check
