// What may be left out of the list of the epochs that are over.
#include "names/cluster/core/past_epochs.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace lockflight::cluster {
namespace {

constexpr identity one{1, 1};
constexpr identity two{2, 1};
constexpr identity three{3, 1};

past_epoch passed_on(epoch_number number, std::vector<identity> members,
                     std::vector<identity> gone) {
  return {number, std::move(members), true, std::move(gone)};
}
past_epoch not_passed_on(epoch_number number, std::vector<identity> members) {
  return {number, std::move(members), false, {}};
}

std::vector<epoch_number> numbers_of(const std::vector<past_epoch>& past) {
  std::vector<epoch_number> numbers;
  for (const past_epoch& each : past) numbers.push_back(each.number);
  return numbers;
}

TEST(PastEpochs, OfSeveralWithTheSameMembersTheFirstAndTheLastAreKept) {
  std::vector<past_epoch> past;
  past.push_back(not_passed_on(2, {one, two}));
  past.push_back(not_passed_on(3, {one, two}));
  past.push_back(not_passed_on(4, {one, two, three}));
  past.push_back(not_passed_on(5, {one, two}));
  past.push_back(not_passed_on(6, {one, two}));
  shorten(past);
  EXPECT_EQ(numbers_of(past), (std::vector<epoch_number>{2, 4, 6}));
}

// Records are kept from the first epoch on whose records have not reached the present homes.
TEST(PastEpochs, TheFirstThatIsNotPassedOnIsKept) {
  std::vector<past_epoch> past;
  past.push_back(passed_on(2, {one, two, three}, {two, three}));
  for (const epoch_number number : {3, 4, 5}) past.push_back(not_passed_on(number, {one}));
  shorten(past);
  EXPECT_EQ(numbers_of(past), (std::vector<epoch_number>{2, 3, 5}));
}

TEST(PastEpochs, ThoseThatDifferAreKept) {
  std::vector<past_epoch> past;
  past.push_back(passed_on(2, {one, two}, {one, two}));
  past.push_back(not_passed_on(3, {one, two}));
  past.back().has_leavers = true;
  past.push_back(not_passed_on(4, {one, two}));
  past.push_back(not_passed_on(5, {identity{1, 2}, two}));
  const std::vector<past_epoch> before = past;
  shorten(past);
  EXPECT_EQ(past, before);
}

TEST(PastEpochs, TheOlderHalfOfManyIsMergedAndLeavesAllInDoubt) {
  std::vector<past_epoch> past;
  for (epoch_number i = 1; i <= past_epochs_most + 1; ++i)
    past.push_back(i <= 10 ? passed_on(i, {identity{1, i}}, {identity{1, i}})
                           : not_passed_on(i, {identity{1, i}}));
  const past_epoch needed = past[10];
  shorten(past);
  ASSERT_EQ(past.size(), past_epochs_most / 2 + 3);
  EXPECT_EQ(past[0], needed);
  EXPECT_EQ(past[1], (past_epoch{past_epochs_most / 2, {}, false, {}}));
  EXPECT_EQ(past[2].number, past_epochs_most / 2 + 1);
  epoch_value now;
  now.number = 100;
  now.past = past;
  EXPECT_EQ(now.records_since(), needed.number);
}

TEST(PastEpochs, TheMergedOneComesBeforeTheFirstThatIsNotPassedOn) {
  std::vector<past_epoch> past;
  for (epoch_number i = 1; i <= past_epochs_most + 1; ++i)
    past.push_back(i < past_epochs_most / 2 ? passed_on(i, {identity{1, i}}, {identity{1, i}})
                                            : not_passed_on(i, {identity{1, i}}));
  shorten(past);
  EXPECT_EQ(past[0], (past_epoch{past_epochs_most / 2 - 1, {}, true, {}}));
  EXPECT_EQ(past[1].number, past_epochs_most / 2);
}

}  // namespace
}  // namespace lockflight::cluster
