// The locks with the memory `views`: every schedule and every choice of messages is searched. The
// number of states is pinned where a row has it, as in search_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "lab/check/check.hpp"
#include "tests/lab/check/each_lock.hpp"
#include "tests/lab/check/search_of.hpp"
#include "tests/support/long_tests.hpp"

namespace lockflight::check {
namespace {

struct seen {
  const char* lock;
  int writers, readers, try_writers, try_readers, rounds;
  const char* levels;
  const char* off;  // of the model: e effects at once, s stores with fences, o posts in order
  settings set;
  std::uint64_t states;  // 0: not pinned
  int deaths = 0;

  [[nodiscard]] request asked() const {
    request r = search_of(*this);
    r.how.memory = memory_kind::views;
    r.how.deaths = deaths;
    return r;
  }
};

void PrintTo(const seen& s, std::ostream* out) {
  print_search(s, *out);
  *out << ", deaths " << s.deaths;
}

class lock_with_views : public testing::TestWithParam<seen> {};

TEST_P(lock_with_views, is_searched_in_full_and_breaks_no_rule) {
  const report made = run(GetParam().asked());
  EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made) << made.replay;
  if (GetParam().states != 0) {
    EXPECT_EQ(made.found.states, GetParam().states);
  }
}

// clang-format off
[[nodiscard]] const std::vector<seen>& rows() {
  static const std::vector<seen> all = with_each_lock<seen>({
    seen{"rma-mcs",            2, 0, 0, 0, 2, "2x1",    "e",  {}, 9699},
    seen{"alock",              2, 0, 0, 0, 2, "2x1",    "",   {}, 362708},
    seen{"alock",              2, 0, 0, 0, 2, "2x1",    "e",  {}, 317073},
    seen{"dq-fair",            2, 0, 0, 0, 2, "2x1",    "",   {}, 174275},
    seen{"dq-fair",            2, 0, 0, 0, 2, "2x1",    "e",  {}, 271911},
    seen{"dlm-server",         2, 0, 0, 0, 2, "2x1",    "e",  {}, 2831},
    seen{"fompi-rw",           1, 1, 0, 0, 2, "2",      "e",  {}, 28997},
    seen{"rma-rw",             1, 1, 0, 0, 2, "2",      "",   {}, 200682},
    seen{"rma-rw",             1, 1, 0, 0, 2, "2",      "e",  {}, 141924},
    seen{"cql",                1, 1, 0, 0, 2, "2",      "e",  {}, 32558},
    seen{"declock",            1, 1, 0, 0, 2, "2",      "",   {}, 156358},
    seen{"declock",            1, 1, 0, 0, 2, "2",      "e",  {}, 150718},
    seen{"msg",                1, 1, 0, 0, 2, "2",      "",   {}, 10203},
    seen{"msg",                1, 1, 0, 0, 2, "2",      "e",  {}, 4019},
    seen{"flight",             2, 0, 0, 0, 2, "2x1",    "",   {}, 339449},
    seen{"flight",             2, 0, 0, 0, 2, "2x1",    "e",  {}, 297802},
    seen{"flight-rw",          1, 1, 0, 0, 2, "2x1",    "",   {}, 171481},
    seen{"flight-rw",          1, 1, 0, 0, 2, "2x1",    "e",  {}, 177142},
    seen{"spin",               2, 0, 0, 0, 2, "2",      "",   {}, 6649},
    seen{"spin",               3, 0, 0, 0, 1, "3x1",    "",   {}, 9406},
    seen{"spin",               2, 0, 1, 0, 1, "3",      "",   {}, 4489},
    seen{"spin",               2, 0, 0, 0, 2, "2",      "e",  {}, 11770},
    seen{"spin-backoff",       2, 0, 0, 0, 2, "2x1",    "",   {}, 6649},
    seen{"d-mcs",              1, 0, 0, 0, 2, "1",      "",   {}, 14},
    seen{"d-mcs",              2, 0, 0, 0, 2, "2",      "",   {}, 4130},
    seen{"d-mcs",              2, 0, 0, 0, 2, "2",      "s",  {}, 4578},
    seen{"d-mcs",              2, 0, 0, 0, 2, "2",      "e",  {}, 6133},
    seen{"d-mcs",              2, 0, 0, 0, 2, "2",      "es", {}, 7477},
    seen{"d-mcs",              3, 0, 0, 0, 1, "3x1",    "",   {}, 11429},
    seen{"d-mcs",              2, 0, 1, 0, 1, "3",      "",   {}, 5619},
    seen{"rma-mcs",            2, 0, 0, 0, 2, "2x1",    "",   {}, 6727},
    seen{"rma-mcs",            2, 0, 0, 0, 2, "2x1",    "es", {}, 12675},
    seen{"rma-mcs",            2, 0, 0, 0, 2, "1x2",    "",   {}, 5498},
    seen{"rma-mcs",            2, 0, 0, 0, 2, "2x1x1",  "",   {}, 10348},
    seen{"alock",              2, 0, 0, 0, 2, "2",      "",   {}, 3963},
    seen{"alock",              3, 0, 0, 0, 1, "3",      "",   {}, 10788},
    seen{"alock",              1, 0, 2, 0, 1, "3x1",    "",   {}, 54262},
    seen{"farlock",            2, 0, 0, 0, 1, "2",      "",   {}, 8077},
    seen{"farlock",            2, 0, 0, 0, 1, "2x1",    "",   {}, 29362},
    seen{"farlock",            2, 0, 0, 0, 1, "2x1",    "o",  {}, 26908},
    seen{"farlock",            2, 0, 0, 0, 1, "2",      "s",  {{"group", 1}}, 56099},
    seen{"alock-listing",      2, 0, 0, 0, 2, "2",      "",   {}, 9649},
    seen{"alock-listing",      3, 0, 0, 0, 1, "3",      "",   {}, 97659},
    seen{"mcs-listing",        2, 0, 0, 0, 2, "2x1",    "",   {}, 3866},
    seen{"mcs-listing",        3, 0, 0, 0, 1, "3",      "",   {}, 21884},
    seen{"dq",                 2, 0, 0, 0, 2, "2x1",    "",   {}, 15497},
    seen{"dq",                 2, 0, 1, 0, 1, "3",      "",   {}, 25455},
    seen{"dq",                 3, 0, 0, 0, 1, "3",      "",   {}, 64265},
    seen{"dq-fair",            1, 0, 0, 0, 9, "1",      "",   {}, 52},
    seen{"dlm-server",         2, 0, 0, 0, 2, "2x1",    "",   {}, 7485},
    seen{"dlm-server",         3, 0, 0, 0, 1, "3",      "",   {}, 10846},
    seen{"msg-deferred",       1, 1, 0, 0, 2, "2x1",    "",   {}, 6317},
    seen{"fompi-rw",           1, 1, 0, 0, 2, "2",      "",   {}, 17254},
    seen{"fompi-rw",           1, 1, 0, 0, 2, "2",      "es", {}, 28997},
    seen{"fompi-rw",           1, 0, 0, 2, 1, "3",      "",   {}, 9606},
    seen{"fompi-rw-backoff",   1, 1, 0, 1, 1, "3",      "",   {}, 18400},
    seen{"mcs-rw-rp",          1, 1, 0, 0, 2, "2",      "",   {}, 13503},
    seen{"mcs-rw-rp",          2, 1, 0, 0, 1, "3x1",    "",   {}, 84020},
    seen{"mcs-rw-rp",          1, 2, 0, 0, 1, "3",      "",   {}, 109792},
    seen{"mcs-rw-rp",          3, 0, 0, 0, 1, "3",      "",   {}, 45623},
    seen{"mcs-rw-rp",          1, 0, 1, 1, 1, "3",      "",   {}, 15068},
    seen{"mcs-rw-rp",          2, 0, 0, 1, 1, "3",      "",   {}, 42349},
    seen{"mcs-rw-wp",          1, 1, 0, 0, 2, "2",      "",   {}, 22784},
    seen{"mcs-rw-wp",          2, 1, 0, 0, 1, "3x1",    "",   {}, 45883},
    seen{"mcs-rw-wp",          3, 0, 0, 0, 1, "3",      "",   {}, 21389},
    seen{"mcs-rw-wp",          1, 0, 1, 1, 1, "3",      "",   {}, 6622},
    seen{"mcs-rw-wp",          2, 0, 0, 1, 1, "3",      "",   {}, 12847},
    seen{"mcs-rw-wp-listing",  1, 1, 0, 0, 2, "2",      "",   {}, 33965},
    seen{"mcs-rw-wp-listing",  2, 1, 0, 0, 1, "3x1",    "",   {}, 137486},
    seen{"mcs-rw-wp-listing",  3, 0, 0, 0, 1, "3",      "",   {}, 28899},
    seen{"mcs-rw-fair",        1, 1, 0, 0, 2, "2",      "",   {}, 9563},
    seen{"mcs-rw-fair",        2, 1, 0, 0, 1, "3x1",    "",   {}, 29115},
    seen{"mcs-rw-fair",        3, 0, 0, 0, 1, "3",      "",   {}, 23969},
    seen{"mcs-rw-fair",        1, 0, 1, 1, 1, "3",      "",   {}, 9056},
    seen{"mcs-rw-fair",        2, 0, 0, 1, 1, "3",      "",   {}, 14483},
    seen{"dslr",               1, 1, 0, 0, 2, "2",      "",   {}, 16923},
    seen{"dslr",               0, 2, 0, 0, 2, "2",      "",   {}, 1925},
    seen{"dslr",               2, 1, 0, 0, 1, "3x1",    "",   {}, 56014},
    seen{"dslr",               1, 2, 0, 0, 1, "3",      "",   {}, 49288},
    seen{"dslr",               1, 0, 1, 1, 1, "3",      "",   {}, 27228},
    seen{"dslr",               2, 0, 0, 1, 1, "3",      "",   {}, 35915},
    seen{"shiftlock",          1, 1, 0, 0, 2, "2",      "",   {}, 3557},
    seen{"shiftlock",          2, 0, 0, 0, 2, "2",      "",   {}, 8165},
    seen{"shiftlock",          2, 1, 0, 0, 1, "3x1",    "",   {}, 16964},
    seen{"shiftlock",          1, 2, 0, 0, 1, "3",      "",   {}, 15617},
    seen{"shiftlock",          1, 0, 1, 1, 1, "3",      "",   {}, 32120},
    seen{"shiftlock",          2, 0, 0, 1, 1, "3",      "",   {}, 29959},
    seen{"cql",                1, 1, 0, 0, 2, "2",      "",   {}, 42787},
    seen{"cql",                2, 0, 0, 0, 2, "2",      "",   {}, 38927},
    seen{"cql",                1, 0, 1, 1, 1, "3",      "",   {}, 73269},
    seen{"rma-rw",             1, 1, 0, 0, 1, "2",      "",   {}, 2634},
    seen{"rma-rw",             1, 1, 0, 0, 1, "2",      "e",  {}, 1918},
    seen{"declock",            1, 1, 0, 0, 1, "2x1",    "",   {}, 2762},
    seen{"declock",            2, 0, 0, 0, 1, "2",      "",   {}, 2702},
    seen{"flight",             2, 0, 0, 0, 1, "2x1",    "",   {}, 2643},
    seen{"flight",             2, 0, 0, 0, 1, "2",      "",   {}, 536},
    seen{"flight",             2, 0, 0, 0, 1, "2x1",    "o",  {}, 2149},
    seen{"flight",             1, 0, 1, 0, 1, "2x1",    "",   {}, 1138},
    seen{"flight",             2, 0, 0, 0, 1, "2x1",    "e",  {}, 2391},
    seen{"flight-rw",          1, 1, 0, 0, 1, "2x1",    "",   {}, 3955},
    seen{"flight-rw",          1, 1, 0, 0, 1, "2",      "",   {}, 591},
    seen{"flight-rw",          1, 1, 0, 0, 1, "2",      "e",  {}, 591},
    seen{"flight-rw",          1, 1, 0, 0, 1, "2x1",    "o",  {}, 3501},
    seen{"flight-rw",          1, 0, 0, 1, 1, "2x1",    "",   {}, 8909},
    seen{"mcs-rw-fair",        1, 2, 0, 0, 1, "3",      "",   {}, 271136},
    seen{"mcs-rw-fair",        1, 1, 0, 0, 2, "2",      "e",  {}, 17918},
    seen{"mcs-rw-rp",          1, 1, 0, 0, 2, "2",      "e",  {}, 18535},
    seen{"mcs-rw-wp",          1, 1, 0, 0, 2, "2",      "e",  {}, 55394},
    seen{"alock",              2, 0, 0, 0, 1, "2x1",    "",   {}, 2910},
    seen{"alock",              2, 0, 0, 0, 1, "2x1",    "e",  {}, 2617},
    seen{"dslr",               1, 1, 0, 0, 2, "2",      "e",  {}, 16923},
    seen{"shiftlock",          1, 1, 0, 0, 2, "2",      "e",  {}, 3557},
    seen{"cql",                1, 1, 0, 0, 1, "2",      "e",  {}, 900},
    seen{"declock",            1, 1, 0, 0, 1, "2",      "e",  {}, 3053},
    seen{"farlock",            2, 0, 0, 0, 1, "2x1",    "e",  {}, 25779},
    seen{"dq",                 2, 0, 0, 0, 2, "2x1",    "e",  {}, 25266},
    seen{"dq-fair",            2, 0, 0, 0, 1, "2x1",    "",   {}, 1461},
    seen{"dq-fair",            2, 0, 0, 0, 1, "2x1",    "e",  {}, 2247},
    seen{"msg",                1, 1, 0, 0, 1, "2",      "",   {}, 553},
    seen{"spin",               2, 0, 0, 0, 1, "2",      "",   {}, 50570, 1},
    seen{"d-mcs",              2, 0, 0, 0, 1, "2",      "",   {}, 68915, 1},
    seen{"rma-mcs",            2, 0, 0, 0, 1, "2",      "",   {}, 76220, 1},
    seen{"alock",              2, 0, 0, 0, 1, "2",      "",   {}, 57905, 1},
    seen{"dq",                 2, 0, 0, 0, 1, "2",      "",   {}, 88737, 1},
    seen{"dq-fair",            2, 0, 0, 0, 1, "2",      "",   {}, 178579, 1},
    seen{"fompi-rw",           1, 1, 0, 0, 1, "2",      "",   {}, 122239, 1},
    seen{"rma-rw",             1, 1, 0, 0, 1, "2",      "",   {}, 309988, 1},
    seen{"mcs-rw-rp",          1, 1, 0, 0, 1, "2",      "",   {}, 139891, 1},
    seen{"mcs-rw-wp",          1, 1, 0, 0, 1, "2",      "",   {}, 136251, 1},
    seen{"mcs-rw-fair",        1, 1, 0, 0, 1, "2",      "",   {}, 148135, 1},
    seen{"dslr",               1, 1, 0, 0, 1, "2",      "",   {}, 89800, 1},
    seen{"shiftlock",          1, 1, 0, 0, 1, "2",      "",   {}, 104433, 1},
    seen{"cql",                1, 1, 0, 0, 1, "2",      "",   {}, 183361, 1},
    seen{"flight",             2, 0, 0, 0, 1, "2",      "",   {}, 135612, 1},
    seen{"flight-rw",          1, 1, 0, 0, 1, "2",      "",   {}, 463306, 1}},
    seen{"",                   0, 0, 0, 0, 1, "2x1",    "",   {}, 0});
  return all;
}
// clang-format on

// A run that is not long leaves out the larger bounds of locks that it searches at smaller ones.
[[nodiscard]] std::vector<seen> rows_of_this_run() {
  constexpr std::uint64_t most_states = 150'000;
  std::vector<seen> some;
  for (const seen& row : rows())
    if (test::long_tests() || row.states <= most_states) some.push_back(row);
  return some;
}

INSTANTIATE_TEST_SUITE_P(small_bounds, lock_with_views, testing::ValuesIn(rows_of_this_run()));

TEST(views, each_lock_is_searched_in_each_run) {
  const std::vector<seen> some = rows_of_this_run();
  for (const seen& row : rows())
    EXPECT_TRUE(std::ranges::any_of(some, [&](const seen& other) {
      return std::string_view(other.lock) == row.lock && std::string_view(other.off) == row.off;
    })) << testing::PrintToString(row);
}

// A search lets fences come at once and drops messages that no participant reads; an engine that
// repeats its counterexample has learned nothing of that.
TEST(views, a_counterexample_can_be_repeated) {
  request r;
  r.lock = "rma-rw-listing";
  r.writers = r.readers = 1;
  r.levels = "2";
  r.how.memory = memory_kind::views;
  const report made = run(r);
  ASSERT_TRUE(made.found.broken);
  EXPECT_NE(made.replay.find("memory=views"), std::string::npos);
  const report again = replay(made.replay);
  ASSERT_TRUE(again.found.broken) << made.replay;
  EXPECT_EQ(again.found.broken->detail, made.found.broken->detail);
}

TEST(views, random_schedules_choose_messages_too) {
  request r;
  r.lock = "d-mcs";
  r.writers = 4;
  r.how.memory = memory_kind::views;
  r.random = true;
  r.random_until.executions = 2'000;
  EXPECT_EQ(run(r).found.what, verdict::bound);
}

TEST(views, what_the_checker_has_no_room_for_is_refused) {
  request r;
  r.lock = "d-mcs";
  r.rounds = 1'000;
  r.how.memory = memory_kind::views;
  r.random = true;
  r.random_until.executions = 20;
  try {
    static_cast<void>(run(r));
    FAIL() << "views have room for 1,000 rounds";
  } catch (const bad_request& e) {
    EXPECT_EQ(
        std::string(e.what()),
        "--lock d-mcs with 2 participants: the checker has room for at most 182 views at once "
        "(accepted: fewer participants, rounds, deaths or stops)");
  }
}

TEST(views, starvation_is_not_searched) {
  request r;
  r.lock = "d-mcs";
  r.how.memory = memory_kind::views;
  r.starvation = watched::all;
  EXPECT_THROW(static_cast<void>(run(r)), bad_request);
}

// ---- mutants by memory order ----

/// A port whose operations are weaker in one place, and a lock that shows it.
struct weakened {
  const char* name;
  void (*change)(port_orders&);
  seen by;
  const char* expected;  ///< the rule that is broken
};

void PrintTo(const weakened& w, std::ostream* out) { *out << w.name; }

class weak_port : public testing::TestWithParam<weakened> {};

TEST_P(weak_port, is_found) {
  request r = GetParam().by.asked();
  r.until.shorten = false;
  EXPECT_EQ(run(r).found.what, verdict::ok);
  GetParam().change(r.how.orders);
  const report made = run(r);
  ASSERT_TRUE(made.found.broken);
  EXPECT_EQ(made.found.broken->property, GetParam().expected);
}

// clang-format off
INSTANTIATE_TEST_SUITE_P(orders, weak_port, testing::Values(
    weakened{"load", [](port_orders& o) { o.load.acquires = false; },
             {"flight-rw", 1, 1, 0, 0, 1, "2", "", {}, 0}, "data race"},
    weakened{"await", [](port_orders& o) { o.await.acquires = false; },
             {"d-mcs", 2, 0, 0, 0, 2, "2", "", {}, 0}, "data race"},
    weakened{"get", [](port_orders& o) { o.get.acquires = false; },
             {"dslr", 1, 1, 0, 0, 2, "2", "", {}, 0}, "data race"},
    weakened{"store", [](port_orders& o) { o.store.releases = false; },
             {"flight", 2, 0, 0, 0, 1, "2", "", {}, 0}, "data race"},
    weakened{"put", [](port_orders& o) { o.put.releases = false; },
             {"spin", 2, 0, 0, 0, 2, "2", "", {}, 0}, "data race"},
    weakened{"cpu_rmw_releases", [](port_orders& o) { o.cpu_rmw.releases = false; },
             {"alock", 2, 0, 0, 0, 2, "2", "", {}, 0}, "data race"},
    weakened{"cpu_rmw_acquires",  // the fence behind it acquires as well
             [](port_orders& o) { o.cpu_rmw.acquires = o.fence_after_rmw = false; },
             {"flight", 2, 0, 0, 0, 1, "2", "", {}, 0}, "data race"},
    weakened{"nic_rmw_releases", [](port_orders& o) { o.nic_rmw.releases = false; },
             {"d-mcs", 3, 0, 0, 0, 1, "3x1", "", {}, 0}, "data race"},
    weakened{"nic_rmw_acquires",  // so does the one at the flush
             [](port_orders& o) { o.nic_rmw.acquires = o.fence_at_flush = false; },
             {"d-mcs", 3, 0, 0, 0, 1, "3x1", "", {}, 0}, "data race"},
    weakened{"fence", [](port_orders& o) { o.fence = false; },
             {"alock", 2, 0, 0, 0, 1, "2x1", "", {}, 0}, "data race"},
    weakened{"fence_after_rmw", [](port_orders& o) { o.fence_after_rmw = false; },
             {"alock", 2, 0, 0, 0, 1, "2x1", "", {}, 0}, "data race"},
    weakened{"fence_at_flush", [](port_orders& o) { o.fence_at_flush = false; },
             {"alock", 2, 0, 0, 0, 1, "2x1", "", {}, 0}, "data race"}),
    [](const auto& row) { return std::string(row.param.name); });
// clang-format on

// An RMW with a fence behind it need not acquire, and no lock needs a fence between a store and a
// get (C12): each has a flush or an RMW there.
TEST(orders, that_no_lock_needs) {
  const auto change = [](port_orders& o) {
    o.cpu_rmw.acquires = o.nic_rmw.acquires = o.fence_at_get = false;
  };
  for (const seen& row : rows()) {
    if (row.states > 10'000) continue;
    request r = row.asked();
    change(r.how.orders);
    EXPECT_EQ(run(r).found.what, verdict::ok) << testing::PrintToString(row);
  }
}

}  // namespace
}  // namespace lockflight::check
