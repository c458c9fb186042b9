// Every broken lock earns the verdict of its table, and the lock that it was made from passes at
// the same bound: a checker must be right about both.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/printed/printed.hpp"
#include "lockflight/lock/all.hpp"
#include "tests/lab/mutants/mutant.hpp"
#include "tests/support/long_tests.hpp"

namespace lockflight::mutants {
namespace {

[[nodiscard]] std::string verdict_of(const check::outcome& found) {
  switch (found.what) {
    case check::verdict::ok:
      return "ok";
    case check::verdict::bound:
      return "bound";
    case check::verdict::violation:
      break;
  }
  return found.broken->property;
}

struct name_of_mutant {
  template <class Info>
  std::string operator()(const Info& info) const {
    return info.param.name;
  }
};

/// The counterexample can be described and replayed.
void expect_repeats(const mutant& m, const check::report& made) {
  EXPECT_FALSE(made.trace.empty());
  const check::report again = check::replay(m.broken, made.replay);
  ASSERT_TRUE(again.found.broken) << made.replay;
  EXPECT_EQ(again.found.broken->property, made.found.broken->property) << made.replay;
  EXPECT_EQ(again.found.broken->detail, made.found.broken->detail);
  EXPECT_EQ(check::trace_table(again), check::trace_table(made));
}

[[nodiscard]] bool can_be_asked(const check::request& asked) {
  return asked.starvation == check::watched::nobody || check::engine::can_copy_stacks();
}

class broken_lock : public testing::TestWithParam<mutant> {};

TEST_P(broken_lock, earns_its_verdict) {
  const mutant& m = GetParam();
  ASSERT_EQ(m.stale, "") << "the source has changed: mend the table";
  check::request asked = request_of(m.bound);
  if (!can_be_asked(asked)) GTEST_SKIP() << "states cannot be known again under a sanitizer";
  const check::report made = check::run(m.broken, asked);
  EXPECT_EQ(verdict_of(made.found), m.expected) << m.why << '\n' << check::trace_table(made);
  std::printf("%-32s %-52s %-16s %8llu states %.2f s\n", m.name.c_str(), m.bound.c_str(),
              verdict_of(made.found).c_str(), static_cast<unsigned long long>(made.found.states),
              made.found.seconds);
  if (!made.found.broken) return;
  expect_repeats(m, made);

  // Random schedules are not shortened. To shorten what took long to find takes longer still.
  constexpr std::uint64_t quick = 300;
  if (asked.random || made.found.states > quick || !asked.rounds_of.empty()) return;
  asked.until.shorten = true;
  const check::report shorter = check::run(m.broken, asked);
  EXPECT_EQ(verdict_of(shorter.found), m.expected);
  EXPECT_LE(shorter.found.schedule.size(), made.found.schedule.size());
  expect_repeats(m, shorter);
}

INSTANTIATE_TEST_SUITE_P(all, broken_lock, testing::ValuesIn(all_mutants()), name_of_mutant());

/// A lock that must pass, and the bound.
struct intact {
  std::string name;
  std::string bound;
  check::subject lock;
};

void PrintTo(const intact& i, std::ostream* out) { *out << i.name << " " << i.bound; }

[[nodiscard]] const check::subject& base_of(const mutant& m) {
  for (const mutant& other : all_mutants())
    if (other.name == m.base) return other.broken;
  for (const check::subject& s : check::subjects())
    if (s.about.name == m.broken.about.name) return s;
  throw std::logic_error("what is the base of " + m.name + "?");
}

/// Each base once at each bound at which a mutant of it is checked.
[[nodiscard]] std::vector<intact> all_intact() {
  std::vector<intact> all;
  std::set<std::pair<std::string, std::string>> known;
  for (const mutant& m : all_mutants()) {
    if (m.base.empty() || m.expected == "ok" || !m.stale.empty()) continue;
    if (known.emplace(m.base, m.bound).second) all.push_back({m.base, m.bound, base_of(m)});
  }
  return all;
}

class intact_lock : public testing::TestWithParam<intact> {};

TEST_P(intact_lock, passes_where_a_mutant_fails) {
  const intact& i = GetParam();
  if (!can_be_asked(request_of(i.bound)))
    GTEST_SKIP() << "states cannot be known again under a sanitizer";
  check::request asked = request_of(i.bound);
  if (!test::long_tests()) {
    asked.until.most_states = 50'000;
    asked.random_until.executions = std::min(asked.random_until.executions, std::uint64_t{20'000});
  }
  const check::report made = check::run(i.lock, asked);
  EXPECT_FALSE(made.found.broken) << check::trace_table(made);
  if (verdict_of(made.found) != "bound" || (test::long_tests() && !asked.random)) {
    EXPECT_EQ(verdict_of(made.found), "ok");
  }
  std::printf("%-32s %-52s %-16s %8llu states %.2f s\n", i.name.c_str(), i.bound.c_str(),
              verdict_of(made.found).c_str(), static_cast<unsigned long long>(made.found.states),
              made.found.seconds);
}

struct name_of_intact {
  template <class Info>
  std::string operator()(const Info& info) const {
    std::string name = info.param.name + "_" + info.param.bound;
    std::replace_if(
        name.begin(), name.end(),
        [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    return name;
  }
};

INSTANTIATE_TEST_SUITE_P(all, intact_lock, testing::ValuesIn(all_intact()), name_of_intact());

// Bugs that need several events in order, for which an exhaustive search is too large.
TEST(mutants, random_schedules_find_deep_ones) {
  // The least number of priority changes; a bug that needs many is searched for with many.
  const std::pair<const char*, int> deep_ones[] = {
      {"tree_entry_of_its_own", 3},  {"tree_threshold_ignored", 12},  {"rw_m2_undone", 3},
      {"rw_forgotten_unflushed", 3}, {"tree_try_undo_says_enter", 3},
  };
  for (const auto& [name, depth] : deep_ones) {
    const auto at =
        std::find_if(all_mutants().begin(), all_mutants().end(),
                     [wanted = std::string(name)](const mutant& m) { return m.name == wanted; });
    ASSERT_NE(at, all_mutants().end()) << name;
    check::request asked = request_of(at->bound);
    asked.random = true;
    asked.random_until.executions = 200'000;
    asked.random_until.depth = depth;
    const check::report made = check::run(at->broken, asked);
    EXPECT_EQ(made.found.what, check::verdict::violation) << name;
    std::printf("%-32s %-52s %-16s %8llu executions %.2f s\n", name, at->bound.c_str(),
                verdict_of(made.found).c_str(),
                static_cast<unsigned long long>(made.found.executions), made.found.seconds);
    if (made.found.broken) expect_repeats(*at, made);
  }
}

TEST(mutants, there_are_enough_and_each_has_a_name_of_its_own) {
  std::set<std::string> names;
  std::set<std::string> properties;
  for (const mutant& m : all_mutants()) {
    EXPECT_TRUE(names.insert(m.name).second) << m.name << " is there twice";
    EXPECT_NE(m.why, "") << m.name;
    properties.insert(m.expected);
  }
  EXPECT_GE(names.size(), 30u);
  // Every rule that the checker knows is broken by a mutant.
  for (const char* const property :
       {"mutual exclusion", "deadlock", "lost wake-up", "not free", "livelock", "bounded bypass",
        "mixed classes", "contract", "foreign cell", "assertion", "starvation", "missing flush",
        "fencing token", "owner died", "taken place", "vain attempt"})
    EXPECT_TRUE(properties.contains(property)) << property;
}

// A lock that is added to the table brings broken variants of itself.
TEST(mutants, every_lock_has_some) {
  std::set<std::string_view> broken;
  for (const mutant& m : all_mutants()) broken.insert(m.broken.about.name);
  lock::all::for_each([&]<template <class> class Lock>(lock::family<Lock>) {
    constexpr std::string_view name = Lock<check::port>::about.name;
    // Its waits alone differ from those of spin, of fompi-rw.
    if (name.ends_with("-backoff")) return;
    EXPECT_TRUE(broken.contains(name)) << "no mutant of " << name
                                       << ": add a table to tests/lab/mutants, "
                                          "made as tests/lab/mutants/example_ticket.mutants";
  });
  catalogue::printed::for_each([&]<template <class> class Lock>(lock::family<Lock>) {
    constexpr std::string_view name = Lock<check::port>::about.name;
    // Broken as they are: listing_test.cpp.
    if (name == "rma-rw-listing" || name == "cql-listing") return;
    EXPECT_TRUE(broken.contains(name))
        << "no mutant of " << name << ": add a table to tests/lab/mutants";
  });
}

}  // namespace
}  // namespace lockflight::mutants
