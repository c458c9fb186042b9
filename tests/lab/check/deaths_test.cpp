// Robust locks whose participants die or stop: every schedule is searched at small bounds, and
// deaths and stops are in replays and traces.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lab/check/check.hpp"
#include "lab/check/program/subject.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "tests/lab/check/each_lock.hpp"

namespace lockflight::check {
namespace {

struct mortal {
  const char* lock;
  int writers, readers, try_writers, timed_writers, rounds, deaths, stops = 0;

  [[nodiscard]] request asked() const {
    request r;
    r.lock = lock;
    r.writers = writers, r.readers = readers;
    r.try_writers = try_writers, r.timed_writers = timed_writers;
    r.rounds = rounds;
    r.how.deaths = deaths;
    r.how.stops = stops;
    return r;
  }
};

void PrintTo(const mortal& m, std::ostream* out) {
  *out << m.lock << " " << m.writers << "w" << m.readers << "r" << m.try_writers << "tw"
       << m.timed_writers << "timed x " << m.rounds << ", " << m.deaths << " deaths, " << m.stops
       << " stops";
}

class robust_lock : public testing::TestWithParam<mortal> {};

TEST_P(robust_lock, is_searched_in_full_and_breaks_no_rule) {
  const report made = run(GetParam().asked());
  EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
  EXPECT_GT(made.found.states, 10'000u);
  EXPECT_EQ(made.replay, "");
}

// clang-format off
[[nodiscard]] std::vector<mortal> rows_of_deaths() {
  return {
    //      lock           w  r  tw timed rounds deaths
    mortal{"spin",         2, 0, 0, 0,    2,     1},
    mortal{"spin-backoff", 2, 0, 0, 0,    1,     2},
    mortal{"d-mcs",        2, 0, 0, 0,    1,     2},
    mortal{"d-mcs",        1, 0, 1, 0,    1,     2},
    mortal{"rma-mcs",      2, 0, 0, 0,    1,     2},
    mortal{"alock",        2, 0, 0, 0,    1,     2},
    mortal{"farlock",      1, 0, 1, 0,    1,     1},
    mortal{"dq",           2, 0, 0, 0,    1,     2},
    mortal{"dq-fair",      2, 0, 0, 0,    1,     2},
    mortal{"fompi-rw",     1, 1, 0, 0,    1,     2},
    mortal{"rma-rw",       1, 1, 0, 0,    1,     2},
    mortal{"mcs-rw-rp",    1, 1, 0, 0,    1,     2},
    mortal{"mcs-rw-wp",    1, 1, 0, 0,    1,     2},
    mortal{"mcs-rw-fair",  1, 1, 0, 0,    1,     2},
    mortal{"dslr",         1, 1, 0, 0,    1,     2},
    mortal{"shiftlock",    1, 1, 0, 0,    1,     2},
    mortal{"cql",          1, 1, 0, 0,    1,     2},
    mortal{"declock",      1, 0, 1, 0,    1,     1},
    mortal{"flight",       1, 0, 0, 1,    1,     2},
    mortal{"flight-rw",    1, 1, 0, 0,    1,     2}};
}

[[nodiscard]] std::vector<mortal> rows_of_stops() {
  return {
    //      lock           w  r  tw timed rounds deaths stops
    mortal{"spin",         2, 0, 0, 0,    1,     1,     1},
    mortal{"spin",         1, 0, 1, 0,    1,     1,     1},
    mortal{"spin-backoff", 2, 0, 0, 0,    1,     0,     2},
    mortal{"d-mcs",        2, 0, 0, 0,    1,     1,     1},
    mortal{"d-mcs",        2, 0, 0, 0,    2,     0,     2},
    mortal{"d-mcs",        1, 0, 1, 0,    1,     1,     1},
    mortal{"rma-mcs",      2, 0, 0, 0,    1,     1,     1},
    mortal{"alock",        2, 0, 0, 0,    1,     1,     1},
    mortal{"farlock",      1, 0, 1, 0,    1,     0,     1},
    mortal{"dq",           2, 0, 0, 0,    1,     1,     1},
    mortal{"dq-fair",      2, 0, 0, 0,    1,     1,     1},
    mortal{"fompi-rw",     1, 1, 0, 0,    1,     1,     1},
    mortal{"rma-rw",       1, 1, 0, 0,    1,     1,     1},
    mortal{"mcs-rw-rp",    1, 1, 0, 0,    1,     1,     1},
    mortal{"mcs-rw-wp",    1, 1, 0, 0,    1,     1,     1},
    mortal{"mcs-rw-fair",  1, 1, 0, 0,    1,     1,     1},
    mortal{"dslr",         1, 1, 0, 0,    1,     1,     1},
    mortal{"shiftlock",    1, 1, 0, 0,    1,     1,     1},
    mortal{"cql",          1, 1, 0, 0,    1,     1,     1},
    mortal{"flight",       1, 0, 0, 1,    1,     1,     1},
    mortal{"flight",       0, 0, 0, 2,    1,     1,     1},
    mortal{"flight-rw",    1, 1, 0, 0,    1,     1,     1}};
}
// clang-format on

/// The rows, and one for each other lock that may outlive its holders.
[[nodiscard]] std::vector<mortal> with_each_robust_lock(const std::vector<mortal>& rows,
                                                        const mortal& smallest) {
  std::vector<mortal> all = with_each_lock(rows, smallest);
  std::erase_if(all, [](const mortal& row) {
    const subject& lock = subject_named(row.lock);
    return lock.make_mortal == nullptr || lock.about.as_printed;
  });
  return all;
}

INSTANTIATE_TEST_SUITE_P(small_bounds, robust_lock,
                         testing::ValuesIn(with_each_robust_lock(rows_of_deaths(),
                                                                 mortal{"", 0, 0, 0, 0, 1, 1})));
INSTANTIATE_TEST_SUITE_P(with_stops, robust_lock,
                         testing::ValuesIn(with_each_robust_lock(rows_of_stops(),
                                                                 mortal{"", 0, 0, 0, 0, 1, 0, 1})));

// Three participants are too many to be searched in full; a random search finds what the mutants
// break.
TEST(stops, of_one_of_three_block_no_other_one) {
  for (const mortal& one :
       {mortal{"d-mcs", 3, 0, 0, 0, 2, 1, 1}, mortal{"flight", 1, 0, 0, 2, 2, 1, 1},
        mortal{"mcs-rw-fair", 1, 2, 0, 0, 2, 1, 1}, mortal{"flight-rw", 2, 1, 0, 0, 2, 0, 2}}) {
    SCOPED_TRACE(testing::PrintToString(one));
    request r = one.asked();
    r.random = true;
    r.random_until.executions = 10'000;
    EXPECT_EQ(run(r).found.what, verdict::bound);
  }
}

[[nodiscard]] std::string refusal_of(const request& asked) {
  try {
    static_cast<void>(run(asked));
  } catch (const bad_request& e) {
    return e.what();
  }
  return "accepted";
}

TEST(deaths, are_refused_where_nobody_survives_them) {
  const auto with = [](auto change) {
    request r = mortal{"d-mcs", 2, 0, 0, 0, 1, 1}.asked();
    change(r);
    return refusal_of(r);
  };
  EXPECT_EQ(with([](request& r) { r.lock = "dlm-server"; }),
            "--deaths 1: dlm-server needs messages, and nobody survives who sends them "
            "(accepted: 0)");
  EXPECT_EQ(with([](request& r) { r.levels = "2x1"; }),
            "--deaths 1: --levels 2x1 has 2 nodes (accepted: one node)");
  EXPECT_EQ(with([](request& r) { r.how.deaths = 3; }), "--deaths 3 (accepted: 0 to 2)");
  EXPECT_EQ(with([](request& r) { r.how.stops = 3; }), "--stops 3 (accepted: 0 to 2)");
  EXPECT_EQ(with([](request& r) {
              r.how.deaths = 0, r.how.stops = 1;
              r.lock = "dlm-server";
            }),
            "--stops 1: dlm-server needs messages, and nobody survives who sends them "
            "(accepted: 0)");
}

// Every living participant gets through in a fair schedule, in any number of rounds, when no other
// one dies any more.
TEST(deaths, starve_no_survivor) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  for (const mortal& one : {mortal{"d-mcs", 2, 0, 0, 0, 1, 1}, mortal{"d-mcs", 2, 0, 0, 0, 1, 2},
                            mortal{"rma-mcs", 2, 0, 0, 0, 1, 1}, mortal{"alock", 2, 0, 0, 0, 1, 1},
                            mortal{"mcs-rw-fair", 1, 1, 0, 0, 1, 1}}) {
    SCOPED_TRACE(testing::PrintToString(one));
    request r = one.asked();
    r.starvation = watched::all;
    const report made = run(r);
    EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
    EXPECT_GT(made.found.states, 10'000u);
  }
}

/// A robust lock that no participant takes once a death is known.
class gives_up_after_a_death {
  using inside = lock::robust<lock::d_mcs, port>;

 public:
  static constexpr lock::facts about = inside::about;
  using parameters = inside::parameters;
  using participant = inside::participant;
  using cells = inside::cells;

  gives_up_after_a_death(participant& me, const cells& where, const parameters& set)
      : lock_(me, where, set), port_(me.port()) {}
  void lock() {
    while (port_.deaths() != 0) port_.pause(0);
    lock_.lock();
  }
  void unlock() { lock_.unlock(); }
  [[nodiscard]] std::uint64_t token() const { return lock_.token(); }
  [[nodiscard]] bool owner_died() { return lock_.owner_died(); }
  void mark_consistent() { lock_.mark_consistent(); }

 private:
  inside lock_;
  port& port_;
};

TEST(deaths, after_which_a_survivor_waits_for_ever_are_starvation) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  const subject lock = make_subject_of<lock::d_mcs, gives_up_after_a_death>();
  request r = mortal{"d-mcs", 2, 0, 0, 0, 1, 1}.asked();
  r.starvation = watched::writers;
  const report made = run(lock, r);
  ASSERT_EQ(made.found.what, verdict::violation);
  EXPECT_EQ(made.found.broken->property, "starvation");
  EXPECT_GT(made.found.repeats, 0u);
  EXPECT_NE(trace_table(made).find("DIES"), std::string::npos);
  const report again = replay(lock, made.replay);
  ASSERT_TRUE(again.found.broken) << made.replay;
  EXPECT_EQ(again.found.broken->detail, made.found.broken->detail);
}

// A waiter for a lock that retries may starve with deaths as without; a release ends.
TEST(deaths, do_not_make_a_spin_lock_fair) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  request r = mortal{"spin", 2, 0, 0, 0, 1, 1}.asked();
  r.starvation = watched::writers;
  const report made = run(r);
  ASSERT_EQ(made.found.what, verdict::violation);
  EXPECT_EQ(made.found.broken->property, "starvation");
  r.starvation = watched::leaving;
  EXPECT_EQ(run(r).found.what, verdict::ok);
}

// The others get through in any number of rounds, unless the stopped participant holds.
TEST(stops, starve_nobody) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "states cannot be known under a sanitizer";
  for (const mortal& one :
       {mortal{"d-mcs", 2, 0, 0, 0, 1, 0, 1}, mortal{"mcs-rw-fair", 1, 1, 0, 0, 1, 0, 1}}) {
    SCOPED_TRACE(testing::PrintToString(one));
    request r = one.asked();
    r.starvation = watched::all;
    const report made = run(r);
    EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
    EXPECT_GT(made.found.states, 10'000u);
  }
}

// A participant stops in a round; its replay and its trace say so.
TEST(stops, can_be_replayed) {
  const report made = replay(
      "lock=d-mcs;stops=1;writers=2;rounds=1;levels=2;node_level=0;retries=2;off=;set=;steps=Ib");
  EXPECT_FALSE(made.found.broken);
  ASSERT_EQ(made.trace.size(), 2u);
  EXPECT_EQ(made.trace[0].what, "STOPS");
}

// A participant dies, and its death becomes known.
TEST(deaths, can_be_replayed) {
  const report made = replay(
      "lock=d-mcs;deaths=1;writers=2;rounds=1;levels=2;node_level=0;retries=2;off=;set=;"
      "steps=QQ");
  EXPECT_FALSE(made.found.broken);
  ASSERT_EQ(made.trace.size(), 2u);
  EXPECT_EQ(made.trace[0].what, "DIES");
  EXPECT_EQ(made.trace[1].what, "its death becomes known");
}

}  // namespace
}  // namespace lockflight::check
