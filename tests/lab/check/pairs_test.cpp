// Every way to acquire a lock beside every other: no lock is searched with fewer ways than it has.
#include "tests/lab/check/pairs.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "lab/check/program/subject.hpp"
#include "lockflight/lock/requirements.hpp"
#include "tests/lab/check/each_lock.hpp"
#include "tests/lab/check/example_ticket.hpp"

namespace lockflight::check {
namespace {

TEST(pairs, of_ways_to_acquire_break_no_rule) {
  for (const subject& lock : subjects()) {
    if (is_broken(lock)) continue;
    std::uint64_t states = 0;
    const std::vector<request> all = pairs_of(lock);
    for (const request& asked : all) {
      const report made = run(asked);
      EXPECT_EQ(made.found.what, verdict::ok)
          << lock.about.name << ": " << describe_parts(made) << ", levels " << made.levels << "\n"
          << trace_table(made);
      states += made.found.states;
    }
    std::printf("%-20s %3zu searches %9llu states\n", std::string(lock.about.name).c_str(),
                all.size(), static_cast<unsigned long long>(states));
  }
}

// The lock that docs/new-lock.md shows is no lock of the list, but might be one.
static_assert(lock::check_requirements<lock::example_ticket>());

TEST(pairs, of_the_example_of_a_new_lock_break_no_rule) {
  const subject lock = make_subject<lock::example_ticket<port>>();
  for (const request& asked : pairs_of(lock)) {
    const report made = run(lock, asked);
    EXPECT_EQ(made.found.what, verdict::ok) << describe_parts(made) << '\n' << trace_table(made);
  }
}

TEST(pairs, have_each_way_that_a_lock_has) {
  const subject& lock = subject_named("flight-rw");
  for (const part_row& row : part_rows) {
    if (row.what == part::abandoner) continue;  // of the robust lock alone
    bool alone = false, beside = false;
    for (const request& asked : pairs_of(lock)) {
      alone = alone || (asked.*row.count == 1 && asked.levels.empty());
      beside = beside || asked.*row.count == 2;
    }
    EXPECT_TRUE(alone) << row.option;
    EXPECT_TRUE(beside) << row.option;
  }
  // A mutex has no readers.
  for (const request& asked : pairs_of(subject_named("d-mcs"))) EXPECT_EQ(asked.readers, 0);
}

}  // namespace
}  // namespace lockflight::check
