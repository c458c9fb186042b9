// The flaws of the papers' listings. Those of RMA-RW one at a time: the checker must find each with
// the others corrected, and the counterexample must show what rma_rw_listing.hpp describes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lab/check/check.hpp"
#include "tests/lab/mutants/mutant.hpp"

namespace lockflight::mutants {
namespace {

using rows = std::vector<check::trace_row>;

constexpr check::rank_t writer = 0;
constexpr check::rank_t reader = 1;

// Two nodes of one rank each and T_R = 2 unless `bound` says otherwise. The lock's words in traces:
const std::string root_tail = "lock[7]@0";
const std::string readers_arrive = "lock[23]@1";  // of the reader's counter
const std::string flag = "0x4";                   // how a value with the WRITE flag begins, or:
const std::string flag_and_less = "0x3fff";

[[nodiscard]] check::report check_listing(const std::string& bound) {
  check::request asked = request_of(bound);
  asked.lock = "rma-rw-listing";
  asked.until.shorten = true;
  return check::run(asked);
}

[[nodiscard]] std::ptrdiff_t first_row(const rows& of, auto&& is_it) {
  const auto at = std::find_if(of.begin(), of.end(), is_it);
  return at == of.end() ? -1 : at - of.begin();
}

[[nodiscard]] bool flagged(const std::string& value) {
  return value.starts_with(flag) || value.starts_with(flag_and_less);
}

/// "lock[23]@1: 0 -> 1" in two: the value before and after; empty for another cell.
[[nodiscard]] std::pair<std::string, std::string> change_of(const check::trace_row& row,
                                                            const std::string& cell) {
  if (!row.changed.starts_with(cell + ": ")) return {};
  const std::size_t arrow = row.changed.find(" -> ");
  const std::size_t from = cell.size() + 2;
  return {row.changed.substr(from, arrow - from), row.changed.substr(arrow + 4)};
}

TEST(listing, flaw_1_a_writer_does_not_wait_for_the_readers_that_are_in) {
  const check::report made = check_listing("writers=1 readers=1");
  ASSERT_EQ(made.found.what, check::verdict::violation);
  EXPECT_EQ(made.found.broken->property, "mutual exclusion");
  EXPECT_EQ(made.found.broken->detail, "rank 0 enters exclusively while 1 reader(s) are in");
  // The reader is counted in ARRIVE and has not departed; the writer sets its flag and enters.
  const auto enters_shared =
      first_row(made.trace, [](const auto& row) { return row.note == "ENTERS shared"; });
  ASSERT_GE(enters_shared, 0);
  const check::trace_row& last = made.trace.back();
  EXPECT_EQ(last.rank, writer);
  EXPECT_EQ(last.note, "ENTERS");
  EXPECT_TRUE(flagged(change_of(last, readers_arrive).second)) << last.changed;
}

TEST(listing, flaw_2_a_reader_removes_the_mark_of_a_writer_that_came_in_between) {
  const check::report made = check_listing("writers=1 readers=1 rounds=1,3 mend_1=1 mend_3=1");
  ASSERT_EQ(made.found.what, check::verdict::violation);
  EXPECT_EQ(made.found.broken->property, "deadlock");
  // The writer waits for readers that never seem to have left.
  EXPECT_EQ(made.found.broken->detail,
            "no participant can go on; rank 0 waits for ever in retries");
  const auto looks = first_row(made.trace, [](const auto& row) {
    return row.rank == reader && row.what == "get " + root_tail + ", was 0";
  });
  const auto marks = first_row(made.trace, [](const auto& row) {
    return row.rank == writer && flagged(change_of(row, readers_arrive).second);
  });
  const auto removes = first_row(made.trace, [](const auto& row) {
    const auto [was, is] = change_of(row, readers_arrive);
    return row.rank == reader && flagged(was) && !flagged(is);
  });
  ASSERT_GE(looks, 0);
  ASSERT_GE(marks, 0);
  EXPECT_LT(looks, removes) << "the reader saw no writer, and then took its mark away";
  EXPECT_LT(marks, removes);
}

TEST(listing, flaw_3_a_reader_waits_for_a_reset_that_was_made_before) {
  const check::report made = check_listing("writers=1 readers=1 rounds=1,3 mend_1=1 mend_2=1");
  ASSERT_EQ(made.found.what, check::verdict::violation);
  EXPECT_EQ(made.found.broken->property, "deadlock");
  EXPECT_EQ(made.found.broken->detail,
            "no participant can go on; rank 1 waits for ever in poll on lock[23]@1, which is 2");
  const auto resets = first_row(made.trace, [](const auto& row) {
    const auto [was, is] = change_of(row, readers_arrive);
    return row.rank == writer && flagged(was) && !flagged(is);
  });
  const auto looks = first_row(made.trace, [](const auto& row) {
    return row.rank == reader && row.what.starts_with("get " + root_tail) &&
           !row.what.ends_with("was 0");
  });
  const auto leaves = first_row(made.trace, [](const auto& row) {
    return row.rank == writer && change_of(row, root_tail).second == "0";
  });
  ASSERT_GE(resets, 0);
  EXPECT_LT(resets, looks) << "the writer has reset the counter and is still in the queue";
  EXPECT_LT(looks, leaves);
}

TEST(listing, passes_with_the_three_mended_where_each_was_found) {
  for (const char* const bound : {"writers=1 readers=1 mend_1=1 mend_2=1 mend_3=1",
                                  "writers=1 readers=1 rounds=1,3 mend_1=1 mend_2=1 mend_3=1"})
    EXPECT_EQ(check_listing(bound).found.what, check::verdict::ok) << bound;
}

/// cql-listing: a waiter's entry is overwritten before the writer that leaves has read it (Q2 of
/// cql.hpp).
TEST(listing, cql_loses_an_entry_that_was_not_read_yet) {
  check::request asked = request_of("writers=2 readers=2 rounds=1,1,1,3 off=o");
  asked.lock = "cql-listing";
  const check::report made = check::run(asked);
  ASSERT_EQ(made.found.what, check::verdict::violation);
  EXPECT_EQ(made.found.broken->property, "deadlock");
  // One slot has two entries, and the first writer waits for the one that was there.
  const auto overwrites = first_row(made.trace, [](const auto& row) {
    return row.what.starts_with("put lock[") && !row.changed.empty() &&
           row.changed.find(": 0 -> ") == std::string::npos && row.changed.find("line[") != 0;
  });
  EXPECT_GE(overwrites, 0) << check::trace_table(made);
  EXPECT_NE(made.found.broken->detail.find("waits for ever in poll on lock["), std::string::npos)
      << made.found.broken->detail;
}

/// alock-listing: its swap is a loop of compare-and-swaps, so a participant can fail to get into
/// the queue for ever, although the paper calls the lock starvation-free.
TEST(listing, alock_is_overtaken_for_ever_before_it_is_in_the_queue) {
  check::request asked = request_of("writers=2 levels=2 starvation=all");
  asked.lock = "alock-listing";
  const check::report made = check::run(asked);
  ASSERT_EQ(made.found.what, check::verdict::violation);
  EXPECT_EQ(made.found.broken->property, "starvation");
  const rows again(made.trace.end() - static_cast<std::ptrdiff_t>(made.found.repeats),
                   made.trace.end());
  // "rank 0 waits for ever; …"
  const check::rank_t loser = made.found.broken->detail.at(std::string("rank ").size()) - '0';
  EXPECT_TRUE(std::ranges::any_of(
      again, [&](const auto& row) { return row.rank != loser && row.note == "ENTERS"; }));
  for (const check::trace_row& row : again) {
    if (row.rank != loser) continue;
    EXPECT_TRUE(row.what.starts_with("cpu compare-swap ")) << row.what;
    EXPECT_EQ(row.changed, "") << "each attempt of the loser fails";
  }

  asked.lock = "alock";  // a swap never fails
  EXPECT_EQ(check::run(asked).found.what, check::verdict::ok);
}

// The flaw of rma-rw's M4. The design's model had counters that are reset in one step.
TEST(listing, has_a_fourth_flaw_a_writer_looks_between_the_halves_of_a_reset) {
  const check::report made =
      check_listing("writers=1 readers=1 rounds=1,2 mend_1=1 mend_2=1 mend_3=1 T_R=1");
  ASSERT_EQ(made.found.what, check::verdict::violation);
  EXPECT_EQ(made.found.broken->property, "deadlock");
  // The reader's reset and the writer's subtract the same departures.
  const auto below_zero =
      first_row(made.trace, [](const auto& row) { return row.changed.ends_with("0 -> -1"); });
  EXPECT_GE(below_zero, 0);
}

}  // namespace
}  // namespace lockflight::mutants
