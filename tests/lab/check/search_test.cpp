// Correct locks at bounds that finish in seconds: every schedule is searched, and the number of
// states is pinned where a row has it. A reduction that omits something, or a lock that changed,
// shows here first.
#include "lab/check/search/search.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/check/check.hpp"
#include "tests/lab/check/each_lock.hpp"
#include "tests/lab/check/search_of.hpp"

namespace lockflight::check {
namespace {

struct pinned {
  const char* lock;
  int writers, readers, try_writers, try_readers, rounds;
  const char* levels;
  int node_level;   // 0: the smallest elements are nodes
  const char* off;  // of the model: e effects at once, s stores at once, o posts in order
  settings set;
  std::uint64_t states, transitions;  // 0: not pinned

  [[nodiscard]] request asked() const {
    request r = search_of(*this);
    r.node_level = node_level;
    return r;
  }
};

void PrintTo(const pinned& p, std::ostream* out) { print_search(p, *out); }

class correct_lock : public testing::TestWithParam<pinned> {};

TEST_P(correct_lock, is_searched_in_full_and_breaks_no_rule) {
  const report made = run(GetParam().asked());
  EXPECT_EQ(made.found.what, verdict::ok) << trace_table(made);
  if (GetParam().states != 0) {
    EXPECT_EQ(made.found.states, GetParam().states);
    EXPECT_EQ(made.found.transitions, GetParam().transitions);
  }
  EXPECT_TRUE(made.trace.empty());
  EXPECT_EQ(made.replay, "");
}

// clang-format off
[[nodiscard]] std::vector<pinned> pinned_rows() {
  return {
    //      lock              w  r tw tr rounds levels node off   set          states transitions
    pinned{"spin",              2, 0, 0, 0, 2, "2",      0, "",   {}, 1987, 2788},
    pinned{"spin",              3, 0, 0, 0, 1, "3x1",    0, "",   {}, 2279, 3835},
    pinned{"spin",              2, 0, 1, 0, 1, "3",      0, "",   {}, 1160, 1966},
    pinned{"spin",              2, 0, 0, 0, 2, "2",      0, "e",  {}, 1987, 2788},
    pinned{"spin-backoff",      2, 0, 0, 0, 2, "2x1",    0, "",   {}, 1987, 2788},
    pinned{"d-mcs",             1, 0, 0, 0, 2, "1",      0, "",   {}, 14, 13},
    pinned{"d-mcs",             2, 0, 0, 0, 2, "2",      0, "",   {}, 1828, 2432},
    pinned{"d-mcs",             2, 0, 0, 0, 2, "2",      0, "s",  {}, 1828, 2432},
    pinned{"d-mcs",             2, 0, 0, 0, 2, "2",      0, "e",  {}, 1828, 2432},
    pinned{"d-mcs",             2, 0, 0, 0, 2, "2",      0, "es", {}, 1828, 2432},
    pinned{"d-mcs",             3, 0, 0, 0, 1, "3x1",    0, "",   {}, 2839, 4832},
    pinned{"d-mcs",             2, 0, 1, 0, 1, "3",      0, "",   {}, 1595, 2686},
    pinned{"d-mcs",             4, 0, 0, 0, 1, "4",      0, "",   {}, 90087, 189744},
    pinned{"rma-mcs",           2, 0, 0, 0, 2, "2x1",    0, "",   {}, 3910, 6461},
    pinned{"rma-mcs",           2, 0, 0, 0, 2, "2x1",    0, "es", {}, 3366, 5053},
    pinned{"rma-mcs",           2, 0, 0, 0, 2, "1x2",    0, "",   {}, 2722, 3777},
    pinned{"rma-mcs",           4, 0, 0, 0, 1, "2x2",    0, "",   {}, 147283, 329852},
    pinned{"rma-mcs",           4, 0, 0, 0, 1, "2x2",    1, "",   {}, 147283, 329852},
    pinned{"rma-mcs",           3, 0, 1, 0, 1, "2x2",    0, "",   {}, 76693, 171975},
    pinned{"rma-mcs",           2, 0, 0, 0, 2, "2x1x1",  0, "",   {}, 6616, 11818},
    pinned{"rma-mcs",           2, 0, 0, 0, 2, "1x2x1",  2, "",   {}, 4914, 7814},
    pinned{"rma-mcs",           2, 0, 0, 0, 2, "1x2x1",  3, "",   {}, 4876, 7716},
    pinned{"rma-mcs",           4, 0, 0, 0, 1, "2x2",    0, "",   {{"T_L2", 0}}, 273055, 604460},
    pinned{"alock",             2, 0, 0, 0, 2, "2",      0, "",   {}, 2326, 3363},
    pinned{"alock",             2, 0, 0, 0, 2, "2x1",    0, "",   {}, 160304, 279710},
    pinned{"alock",             3, 0, 0, 0, 1, "3",      0, "",   {}, 2861, 4936},
    pinned{"alock",             3, 0, 0, 0, 1, "3x1",    0, "",   {}, 161703, 311580},
    pinned{"alock",             3, 0, 0, 0, 1, "3x1",    0, "",   {{"remote_budget", 2}}, 102975, 205846},
    pinned{"alock",             2, 0, 1, 0, 1, "3x1",    0, "",   {{"remote_budget", 2}}, 42031, 77856},
    pinned{"alock",             1, 0, 2, 0, 1, "3x1",    0, "",   {}, 8885, 15636},
    pinned{"farlock",           2, 0, 0, 0, 1, "2",      0, "",   {}, 11245, 24974},
    pinned{"farlock",           2, 0, 0, 0, 1, "2x1",    0, "",   {}, 18834, 37262},
    pinned{"farlock",           2, 0, 0, 0, 1, "2x1",    0, "o",  {}, 19357, 36747},
    pinned{"farlock",           1, 0, 2, 0, 1, "3x1",    0, "",   {}, 92924, 227775},
    pinned{"farlock",           2, 0, 0, 0, 1, "2",      0, "s",  {{"group", 1}}, 6081, 10430},
    pinned{"alock-listing",     2, 0, 0, 0, 2, "2",      0, "",   {}, 2430, 3342},
    pinned{"alock-listing",     2, 0, 0, 0, 2, "2x1",    0, "",   {}, 69912, 110344},
    pinned{"alock-listing",     3, 0, 0, 0, 1, "3",      0, "",   {}, 6095, 10444},
    pinned{"alock-listing",     3, 0, 0, 0, 1, "3x1",    0, "",   {}, 78687, 140924},
    pinned{"alock-listing",     3, 0, 0, 0, 1, "3x1",    0, "",   {{"remote_budget", 2}}, 65783, 119624},
    pinned{"mcs-listing",       2, 0, 0, 0, 2, "2x1",    0, "",   {}, 1698, 2290},
    pinned{"mcs-listing",       3, 0, 0, 0, 1, "3",      0, "",   {}, 4665, 8022},
    pinned{"dq",                2, 0, 0, 0, 2, "2x1",    0, "",   {}, 5243, 7160},
    pinned{"dq",                2, 0, 1, 0, 1, "3",      0, "",   {}, 5818, 9844},
    pinned{"dq",                3, 0, 0, 0, 1, "3",      0, "",   {}, 13764, 23472},
    pinned{"dq-fair",           1, 0, 0, 0, 9, "1",      0, "",   {}, 52, 51},
    pinned{"dq-fair",           2, 0, 0, 0, 2, "2x1",    0, "",   {}, 76665, 106576},
    pinned{"dq-fair",           3, 0, 0, 0, 1, "3x1",    0, "",   {}, 260566, 466035},
    pinned{"dq-fair",           2, 0, 1, 0, 1, "3",      0, "",   {}, 107313, 192405},
    pinned{"dlm-server",        2, 0, 0, 0, 2, "2x1",    0, "",   {}, 7334, 10930},
    pinned{"dlm-server",        3, 0, 0, 0, 1, "3",      0, "",   {}, 10734, 21049},
    pinned{"dlm-server",        2, 0, 2, 0, 1, "2x2",    0, "",   {}, 247683, 635611},
    pinned{"msg",               1, 1, 1, 1, 1, "2x2",    0, "",   {}, 429848, 1100852},
    pinned{"msg-deferred",      1, 1, 0, 0, 2, "2x1",    0, "",   {}, 6135, 11479},
    pinned{"fompi-rw",          1, 1, 0, 0, 2, "2",      0, "",   {}, 8977, 15307},
    pinned{"fompi-rw",          1, 1, 0, 0, 2, "2",      0, "es", {}, 7793, 12615},
    pinned{"fompi-rw",          2, 1, 0, 0, 1, "3",      0, "",   {}, 246131, 507653},
    pinned{"fompi-rw",          1, 1, 1, 0, 1, "3",      0, "",   {}, 93879, 198463},
    pinned{"fompi-rw",          1, 0, 0, 2, 1, "3",      0, "",   {}, 3100, 6041},
    pinned{"fompi-rw-backoff",  1, 1, 0, 1, 1, "3",      0, "",   {}, 6108, 12033},
    pinned{"rma-rw",            1, 1, 0, 0, 2, "2",      0, "",   {}, 68748, 133471},
    pinned{"rma-rw",            1, 1, 0, 0, 2, "2",      0, "s",  {}, 68748, 133471},
    pinned{"rma-rw",            1, 1, 0, 0, 2, "2",      0, "e",  {}, 40114, 57676},
    pinned{"rma-rw",            1, 1, 0, 0, 2, "2",      0, "es", {}, 40114, 57676},
    pinned{"rma-rw",            1, 1, 0, 0, 2, "2x1",    1, "",   {}, 75764, 143981},
    pinned{"rma-rw",            1, 1, 0, 0, 2, "2x1",    0, "",   {{"T_R", 1}}, 188795, 372785},
    pinned{"rma-rw",            2, 1, 0, 0, 1, "3x1",    0, "",   {{"T_DC", 3}}, 29601, 58546},
    pinned{"rma-rw",            1, 1, 0, 0, 1, "2x1x1",  2, "",   {}, 1182, 2210},
    pinned{"rma-rw",            1, 1, 0, 0, 1, "1x2x1",  3, "",   {}, 1182, 2210},
    pinned{"rma-rw",            1, 2, 0, 0, 1, "3",      0, "",   {{"T_DC", 3}, {"T_R", 1}}, 249577, 467053},
    pinned{"rma-rw",            0, 2, 0, 0, 5, "2",      0, "",   {{"T_DC", 2}, {"T_R", 4}}, 1979585, 3167145},
    pinned{"rma-rw",            1, 0, 0, 2, 1, "3",      0, "",   {{"T_DC", 3}, {"T_R", 1}}, 44780, 83382},
    pinned{"rma-rw",            1, 1, 1, 1, 1, "2x2",    0, "",   {}, 942596, 2716415},
    pinned{"mcs-rw-rp",         1, 1, 0, 0, 2, "2",      0, "",   {}, 5648, 8398},
    pinned{"mcs-rw-rp",         2, 1, 0, 0, 1, "3x1",    0, "",   {}, 6869, 12496},
    pinned{"mcs-rw-rp",         1, 2, 0, 0, 1, "3",      0, "",   {}, 16444, 31937},
    pinned{"mcs-rw-rp",         3, 0, 0, 0, 1, "3",      0, "",   {}, 4053, 7212},
    pinned{"mcs-rw-rp",         1, 0, 1, 1, 1, "3",      0, "",   {}, 2399, 4357},
    pinned{"mcs-rw-rp",         2, 0, 0, 1, 1, "3",      0, "",   {}, 3559, 6444},
    pinned{"mcs-rw-wp",         1, 1, 0, 0, 2, "2",      0, "",   {}, 14053, 20920},
    pinned{"mcs-rw-wp",         2, 1, 0, 0, 1, "3x1",    0, "",   {}, 12604, 22887},
    pinned{"mcs-rw-wp",         1, 2, 0, 0, 1, "3",      0, "",   {}, 73705, 142118},
    pinned{"mcs-rw-wp",         3, 0, 0, 0, 1, "3",      0, "",   {}, 4005, 7146},
    pinned{"mcs-rw-wp",         1, 0, 1, 1, 1, "3",      0, "",   {}, 2203, 4015},
    pinned{"mcs-rw-wp",         2, 0, 0, 1, 1, "3",      0, "",   {}, 3175, 5778},
    pinned{"mcs-rw-wp-listing", 1, 1, 0, 0, 2, "2",      0, "",   {}, 12484, 20482},
    pinned{"mcs-rw-wp-listing", 2, 1, 0, 0, 1, "3x1",    0, "",   {}, 13396, 27746},
    pinned{"mcs-rw-wp-listing", 1, 2, 0, 0, 1, "3",      0, "",   {}, 31986, 67493},
    pinned{"mcs-rw-wp-listing", 3, 0, 0, 0, 1, "3",      0, "",   {}, 8045, 16522},
    pinned{"mcs-rw-fair",       1, 1, 0, 0, 2, "2",      0, "",   {}, 11267, 22928},
    pinned{"mcs-rw-fair",       0, 2, 0, 0, 2, "2",      0, "",   {}, 90607, 156614},
    pinned{"mcs-rw-fair",       2, 1, 0, 0, 1, "3x1",    0, "",   {}, 23149, 65122},
    pinned{"mcs-rw-fair",       1, 2, 0, 0, 1, "3",      0, "",   {}, 52430, 122394},
    pinned{"mcs-rw-fair",       3, 0, 0, 0, 1, "3",      0, "",   {}, 23134, 65117},
    pinned{"mcs-rw-fair",       1, 0, 1, 1, 1, "3",      0, "",   {}, 5824, 14445},
    pinned{"mcs-rw-fair",       2, 0, 0, 1, 1, "3",      0, "",   {}, 8326, 21071},
    pinned{"mcs-rw-fair",       1, 1, 1, 1, 1, "2x2",    0, "",   {}, 163277, 555983},
    pinned{"dslr",              1, 1, 0, 0, 2, "2",      0, "",   {}, 5879, 8422},
    pinned{"dslr",              0, 2, 0, 0, 2, "2",      0, "",   {}, 1501, 2110},
    pinned{"dslr",              2, 1, 0, 0, 1, "3x1",    0, "",   {}, 11564, 19403},
    pinned{"dslr",              1, 2, 0, 0, 1, "3",      0, "",   {}, 10320, 17841},
    pinned{"dslr",              1, 0, 1, 1, 1, "3",      0, "",   {}, 5284, 9476},
    pinned{"dslr",              2, 0, 0, 1, 1, "3",      0, "",   {}, 7241, 12520},
    pinned{"shiftlock",         1, 1, 0, 0, 2, "2",      0, "",   {}, 1316, 1851},
    pinned{"shiftlock",         2, 0, 0, 0, 2, "2",      0, "",   {}, 3143, 4350},
    pinned{"shiftlock",         2, 1, 0, 0, 1, "3x1",    0, "",   {}, 2630, 4775},
    pinned{"shiftlock",         1, 2, 0, 0, 1, "3",      0, "",   {}, 2301, 4288},
    pinned{"shiftlock",         1, 0, 1, 1, 1, "3",      0, "",   {}, 7056, 13115},
    pinned{"shiftlock",         2, 0, 0, 1, 1, "3",      0, "",   {}, 5163, 9404},
    pinned{"shiftlock",         1, 1, 1, 1, 1, "2x2",    0, "",   {}, 299366, 690439},
    pinned{"cql",               1, 1, 0, 0, 2, "2",      0, "",   {}, 13450, 23024},
    pinned{"cql",               2, 0, 0, 0, 2, "2",      0, "",   {}, 10711, 18438},
    pinned{"cql",               2, 1, 0, 0, 1, "3x1",    0, "",   {}, 207458, 631521},
    pinned{"cql",               1, 2, 0, 0, 1, "3",      0, "",   {}, 113976, 345345},
    pinned{"cql",               1, 0, 1, 1, 1, "3",      0, "",   {}, 12419, 26912},
    pinned{"cql",               2, 0, 0, 1, 1, "3",      0, "",   {}, 33321, 80576},
    pinned{"declock",           2, 0, 0, 0, 2, "2",      0, "",   {}, 57613, 99644},
    pinned{"declock",           1, 1, 0, 0, 2, "2x1",    0, "",   {}, 53662, 98801},
    pinned{"declock",           2, 1, 0, 0, 1, "3",      0, "",   {}, 77628, 164794},
    pinned{"declock",           1, 2, 0, 0, 1, "3",      0, "",   {}, 155475, 339534},
    pinned{"declock",           1, 0, 1, 1, 1, "3",      0, "",   {}, 33614, 71915},
    pinned{"flight",            2, 0, 0, 0, 2, "2x1",    0, "",   {}, 273878, 502149},
    pinned{"flight",            2, 0, 0, 0, 2, "2x1",    0, "o",  {}, 248625, 434353},
    pinned{"flight",            3, 0, 0, 0, 1, "3",      0, "s",  {}, 25147, 44135},
    pinned{"flight",            3, 0, 0, 0, 1, "3",      0, "s",  {{"handovers", 0}}, 473600, 916273},
    pinned{"flight",            3, 0, 0, 0, 1, "3",      0, "",   {{"patience", 1}}, 343185, 703294},
    pinned{"flight",            2, 0, 1, 0, 1, "3x1",    0, "",   {}, 256314, 653992},
    pinned{"flight-rw",         2, 1, 0, 0, 1, "3",      0, "s",  {}, 227027, 441826},
    pinned{"flight-rw",         1, 1, 1, 0, 1, "3x1",    0, "",   {}, 1105274, 2552941},
    pinned{"flight-rw",         1, 1, 0, 0, 2, "2x1",    0, "o",  {}, 64274, 97756},
    pinned{"flight-rw",         1, 2, 0, 0, 1, "3x1",    0, "",   {}, 210264, 463812},
    pinned{"flight-rw",         1, 1, 0, 1, 1, "3x1",    0, "",   {}, 376859, 813749}};
}
// clang-format on

INSTANTIATE_TEST_SUITE_P(small_bounds, correct_lock,
                         testing::ValuesIn(with_each_lock(
                             pinned_rows(), pinned{"", 0, 0, 0, 0, 2, "2x1", 0, "", {}, 0, 0})));

TEST(search, going_back_by_copies_and_by_running_again_agree) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "stacks cannot be copied under a sanitizer";
  for (const auto& [lock, memory] :
       {std::pair{"d-mcs", memory_kind::tso}, std::pair{"fompi-rw", memory_kind::tso},
        std::pair{"rma-rw", memory_kind::tso}, std::pair{"d-mcs", memory_kind::views}}) {
    request r;
    r.lock = lock;
    r.writers = 2;
    r.levels = "2x1";
    r.how.memory = memory;
    const outcome copied = run(r).found;
    r.until.re_execute = true;
    const outcome run_again = run(r).found;
    EXPECT_EQ(copied.states, run_again.states) << lock;
    EXPECT_EQ(copied.transitions, run_again.transitions) << lock;
    EXPECT_EQ(copied.cut, run_again.cut) << lock;
    EXPECT_EQ(copied.what, run_again.what) << lock;
  }
}

TEST(search, going_back_by_copies_and_by_running_again_find_the_same) {
  if (!engine::can_copy_stacks()) GTEST_SKIP() << "stacks cannot be copied under a sanitizer";
  request r;
  r.lock = "rma-rw-listing";
  r.writers = r.readers = 1;
  for (const settings& set : {settings{}, settings{{"mend_1", 1}, {"mend_2", 1}, {"T_R", 1}}}) {
    r.set = set;
    r.rounds = set.empty() ? 1 : 2;
    r.until = {.shorten = false};
    const report copied = run(r);
    r.until.re_execute = true;
    const report run_again = run(r);
    ASSERT_TRUE(copied.found.broken && run_again.found.broken);
    EXPECT_EQ(copied.found.broken->detail, run_again.found.broken->detail);
    EXPECT_EQ(copied.replay, run_again.replay);
  }
}

// The number of retries bounds the search, not the verdict.
TEST(search, more_retries_are_more_states_and_the_same_verdict) {
  for (const char* const lock : {"spin", "fompi-rw", "rma-rw"}) {
    request r;
    r.lock = lock;
    r.writers = lock == std::string("spin") ? 2 : 1;
    r.readers = 2 - r.writers;
    std::uint64_t first = 0;
    std::uint64_t before = 0;
    for (const int retries : {1, 2, 3, 4}) {
      r.how.retries = retries;
      const outcome found = run(r).found;
      if (retries == 1) first = found.states;
      EXPECT_EQ(found.what, verdict::ok) << lock << ", " << retries << " retries";
      EXPECT_GE(found.states, before) << lock << ", " << retries << " retries";
      before = found.states;
    }
    EXPECT_GT(before, first) << lock;
  }
}

// Of two locks for local and remote participants, one has an order over both.
TEST(search, another_bound_on_overtaking_than_the_locks) {
  request r;
  r.lock = "alock";
  r.writers = 3;
  r.levels = "3x1";
  r.how.most_overtaken = 0;
  const report made = run(r);
  ASSERT_TRUE(made.found.broken);
  EXPECT_EQ(made.found.broken->property, "bounded bypass");
  const report again = replay(made.replay);
  ASSERT_TRUE(again.found.broken) << made.replay;
  EXPECT_EQ(again.found.broken->detail, made.found.broken->detail);

  r.lock = "farlock";
  r.random = true;
  r.random_until.executions = 20'000;
  EXPECT_FALSE(run(r).found.broken);
  r.random = false;
  r.starvation = watched::all;
  EXPECT_THROW(static_cast<void>(run(r)), bad_request);
}

// While a releaser has given the lock to another element, or node, and its successor does not ask
// for the lock there yet, the rest overtake that successor in each of their rounds.
TEST(search, no_number_bounds_overtaking_where_an_element_has_several_participants) {
  struct row {
    const char* lock;
    std::vector<int> rounds;
  };
  for (const row& one : {row{"rma-mcs", {1, 1, 20, 0}}, row{"flight", {1, 1, 0, 20}},
                         row{"flight", {0, 20, 1, 1}}}) {
    SCOPED_TRACE(one.lock);
    request r;
    r.lock = one.lock;
    r.writers = 4;
    r.levels = "2x2";
    r.rounds_of = one.rounds;
    r.random = true;
    r.random_until.executions = 20'000;
    EXPECT_FALSE(run(r).found.broken) << "the lock promises no bound";
    r.how.most_overtaken = 19;
    const report made = run(r);
    ASSERT_TRUE(made.found.broken);
    EXPECT_EQ(made.found.broken->property, "bounded bypass");
  }
}

TEST(search, without_the_network_there_are_fewer_states) {
  request r;
  r.lock = "rma-rw";
  r.writers = r.readers = 1;
  const std::uint64_t all = run(r).found.states;
  r.how.store_buffering = false;
  const std::uint64_t unbuffered = run(r).found.states;
  r.how.delayed_effects = false;
  const report direct = run(r);
  EXPECT_EQ(direct.found.what, verdict::ok);
  EXPECT_LE(unbuffered, all);
  EXPECT_LT(direct.found.states, unbuffered);
}

std::string without_time(const report& made) {
  nlohmann::json json = to_json(made);
  json.erase("seconds");
  return json.dump() + trace_table(made);
}

request listing() {
  request r;
  r.lock = "rma-rw-listing";
  r.writers = r.readers = 1;
  r.levels = "2";
  return r;
}

TEST(search, the_same_request_gives_the_same_trace_byte_for_byte) {
  EXPECT_EQ(without_time(run(listing())), without_time(run(listing())));
}

TEST(search, the_same_seed_gives_the_same_random_trace) {
  request r = listing();
  r.random = true;
  r.random_until.executions = 10'000;
  const report made = run(r);
  EXPECT_EQ(made.found.what, verdict::violation);
  EXPECT_EQ(without_time(made), without_time(run(r)));
}

TEST(search, random_schedules_never_say_ok) {
  request r;
  r.lock = "d-mcs";
  r.random = true;
  r.random_until.executions = 100;
  EXPECT_EQ(run(r).found.what, verdict::bound);
}

TEST(search, what_stops_early_is_a_bound) {
  request r;
  r.lock = "d-mcs";
  r.writers = 3;
  r.rounds = 3;
  r.until.most_states = 1000;
  const report made = run(r);
  EXPECT_EQ(made.found.what, verdict::bound);
  EXPECT_GE(made.found.states, 1000u);
}

TEST(search, says_what_it_accepts) {
  const auto message = [](const request& r) -> std::string {
    try {
      static_cast<void>(run(r));
    } catch (const bad_request& e) {
      return e.what();
    }
    return "accepted";
  };
  request r;
  r.lock = "pthread-mutex";
  EXPECT_NE(message(r).find("not checkable"), std::string::npos);
  r.lock = "d-mcs";
  r.readers = 1;
  EXPECT_NE(message(r).find("is a mutex"), std::string::npos);
  r.readers = 0;
  r.writers = 9;
  EXPECT_NE(message(r).find("accepted: 0 to 8"), std::string::npos);
  r.writers = 2;
  r.levels = "3x1";
  EXPECT_NE(message(r).find("multiply"), std::string::npos);
  r.levels = "";
  r.set = {{"T_R", 1}};
  EXPECT_NE(message(r).find("--set 'T_R' (accepted: none"), std::string::npos);
}

}  // namespace
}  // namespace lockflight::check
