// A lock's facts are true: its name is its own, its parameters are within their ranges, and it
// takes as many bytes of a layout as they say. lockflight/lock/requirements.hpp has what a compiler
// can see.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "lab/printed/printed.hpp"
#include "subjects.hpp"

namespace lockflight::test {
namespace {

/// Calls `visit.operator()<Lock>()` for every lock on a port, those as printed and the baselines
/// included.
template <class Port, class Visit>
void for_each_lock(Visit visit) {
  const auto call = [&]<class Family>(Family) {
    visit.template operator()<typename Family::template on<Port>>();
  };
  lock::all::for_each(call);
  catalogue::printed::for_each(call);
  baselines::for_each(call);
}

// The names themselves are in docs/locks.md, and tests/cli/readme_test.py compares.
TEST(facts, each_lock_has_a_name_of_its_own) {
  std::set<std::string_view> names;
  for_each_lock<shm::port>([&]<class Lock>() {
    EXPECT_TRUE(names.insert(Lock::about.name).second) << Lock::about.name << " is there twice";
  });
}

TEST(facts, say_what_a_lock_needs) {
  for_each_lock<shm::port>([]<class Lock>() {
    const lock::facts about = Lock::about;
    SCOPED_TRACE(about.name);
    EXPECT_EQ(about.bears_lost_waiters, about.name == "dlm-server")
        << "a second lock that bears lost waiters: add it here, and its losses to "
           "tests/fabric/shm/lost_rank_test.cpp";
    EXPECT_EQ(about.as_printed, about.name.ends_with("-listing"));
    // A lock has a word somewhere, unless it is all messages: place_takes_what_the_facts_say has
    // the numbers of both, touched_bytes_test those of participants.
    EXPECT_EQ(about.bytes_home + about.bytes_per_node == 0, about.needs_messages);
  });
}

// ---- parameters ----

TEST(facts, parameters_have_unique_names_and_defaults_in_their_ranges) {
  for_each_lock<shm::port>([]<class Lock>() {
    typename Lock::parameters set;
    std::set<std::string_view> names;
    for (const auto& p : Lock::parameters::all()) {
      SCOPED_TRACE(std::string(Lock::about.name) + " " + std::string(p.name));
      EXPECT_TRUE(names.insert(p.name).second) << "named twice";
      EXPECT_TRUE(std::all_of(p.name.begin(), p.name.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_';
      })) << "must be usable in --set name=value";
      EXPECT_FALSE(p.what.empty());
      EXPECT_LE(p.min, p.max);
      EXPECT_GE(p.of(set), p.min) << "the default";
      EXPECT_LE(p.of(set), p.max) << "the default";
    }
  });
}

TEST(facts, each_parameter_is_a_member_of_its_own) {
  for_each_lock<shm::port>([]<class Lock>() {
    const auto all = Lock::parameters::all();
    typename Lock::parameters set;
    std::int64_t value = 1'000'000;
    for (const auto& p : all) p.of(set) = value++;
    value = 1'000'000;
    for (const auto& p : all) EXPECT_EQ(p.of(set), value++) << Lock::about.name << " " << p.name;
  });
}

// ---- bytes: tests/lab/sim/touched_bytes_test.cpp counts the cells that are touched ----

/// The bytes at the home that depend on the number of ranks.
[[nodiscard]] int bytes_for_ranks(const lock::facts& about, unsigned ranks) {
  return about.bytes_home_per_rank * static_cast<int>(ranks);
}

// place() takes of the layout what the facts say, except for whole cache lines and for the blocks
// being symmetric: each block of a lock has at least one cell that it uses somewhere.
TEST(facts, place_takes_what_the_facts_say) {
  constexpr int line_bytes = static_cast<int>(rma::line_words * sizeof(rma::word));
  for_each_lock<shm::port>([]<class Lock>() {
    const lock::facts about = Lock::about;
    SCOPED_TRACE(about.name);
    rma::layout fresh(1u << 12);
    const std::uint32_t before = fresh.used();
    static_cast<void>(
        Lock::cells::place(fresh, rma::topology::balanced({2, 3}), typename Lock::parameters{}, 0));
    const int bytes = static_cast<int>((fresh.used() - before) * sizeof(rma::word));
    const int said = about.bytes_home + bytes_for_ranks(about, 6) + about.bytes_per_node;
    const int blocks = said / static_cast<int>(sizeof(rma::word));  // one word each, at worst
    EXPECT_GE(bytes, said);
    EXPECT_LE(bytes, std::max(blocks * line_bytes, said + line_bytes));
  });
}

// On nodes of many ranks place() takes as much more as the facts say, and no more on larger ones.
TEST(facts, counters_of_a_large_node_take_what_the_facts_say) {
  for_each_lock<shm::port>([]<class Lock>() {
    SCOPED_TRACE(Lock::about.name);
    const auto bytes_of = [](int ranks_of_node) {
      rma::layout fresh(1u << 12);
      const std::uint32_t before = fresh.used();
      static_cast<void>(Lock::cells::place(fresh, rma::topology::balanced({2, ranks_of_node}),
                                           typename Lock::parameters{}, 0));
      return static_cast<int>((fresh.used() - before) * sizeof(rma::word)) -
             bytes_for_ranks(Lock::about, 2 * static_cast<unsigned>(ranks_of_node));
    };
    // They begin on a line of their own.
    constexpr int line_bytes = static_cast<int>(rma::line_words * sizeof(rma::word));
    const int few_and_counters = bytes_of(2) + Lock::about.bytes_of_counters;
    EXPECT_GE(bytes_of(64), few_and_counters);
    EXPECT_LT(bytes_of(64), few_and_counters + line_bytes);
    EXPECT_EQ(bytes_of(256), bytes_of(64));
  });
}

// The design's promise: one lock at most 64 bytes at its home and 16 bytes on each node. Four have
// more on a node: rma-rw, whose writers' queue and readers' counter lie there, as in the paper;
// flight, whose nodes have a lock of their own and an entry in the queue of nodes; flight-rw, which
// has both, and a word for each cell of readers; and declock, whose nodes have a record. What cql
// and declock have at the home for each rank comes on top.
TEST(facts, locks_are_as_small_as_promised) {
  for_each_lock<shm::port>([]<class Lock>() {
    const lock::facts about = Lock::about;
    EXPECT_LE(about.bytes_home, 64) << about.name;
    const std::map<std::string_view, int> more{
        {"rma-rw", 32}, {"rma-rw-listing", 32}, {"flight", 32}, {"flight-rw", 56}, {"declock", 64}};
    const auto found = more.find(about.name);
    EXPECT_LE(about.bytes_per_node, found == more.end() ? 16 : found->second)
        << about.name << ": if it needs as many, add it to `more` here and say why above";
    EXPECT_LE(about.bytes_per_participant, static_cast<int>(rma::line_words * sizeof(rma::word)))
        << about.name;
  });
}

}  // namespace
}  // namespace lockflight::test
