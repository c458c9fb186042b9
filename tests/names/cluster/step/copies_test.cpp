// Two agents with the words of one host, as after a copy of its domain file.
#include "tests/names/cluster/step/agents_in_step.hpp"

namespace lockflight::cluster::test {
namespace {

TEST_F(AgentsInStep, OfTwoAgentsWithTheSameKeysOneEnds) {
  add_first(2);
  renew_as_twin_of(at(2));
  pass(timing().ttl / 2);
  EXPECT_EQ(at(2).stopped, stop::copied);
  EXPECT_EQ(at(2).words.deadline(), 0);
  EXPECT_EQ(at(1).stopped, stop::none);
}

TEST_F(AgentsInStep, TheHostWhoseWordsWereCopiedEndsWhenTheCopyIsUsed) {
  add_first(2);
  add_copy(2, at(2).words);
  pass(timing().ttl / 2);
  EXPECT_EQ(at(2).stopped, stop::copied);
  EXPECT_EQ(at(2).words.deadline(), 0);
}

TEST_F(AgentsInStep, AnAgentOnACopyEndsIfTheHostHasRenewedSince) {
  add_first(2);
  sim::memory before;
  before.copy(at(2).words);
  pass(timing().ttl / 4);
  const host& copy = add_copy(2, before);
  pass(second);
  EXPECT_EQ(copy.stopped, stop::copied);
  EXPECT_EQ(at(2).stopped, stop::none);
  EXPECT_GT(at(2).words.deadline(), now());
}

TEST_F(AgentsInStep, ALateRenewalOfTheAgentBeforeIsNoCopy) {
  add_first(2);
  delay_writes_of(2);
  start(at(2));
  pass(second / 10);
  start(at(2));
  pass(second / 10);
  carry_out_late();
  pass(5 * second);
  EXPECT_EQ(at(2).stopped, stop::none);
  EXPECT_GT(at(2).words.deadline(), now());
}

// Both agents have the same number, and only one of them has taken up the host's key.
TEST_F(AgentsInStep, AnAgentOnACopyEndsIfTheHostHasStartedAnother) {
  add_first(2);
  sim::memory before;
  before.copy(at(2).words);
  start(at(2));
  pass(second);
  const host& copy = add_copy(2, before);
  pass(second);
  EXPECT_EQ(copy.stopped, stop::copied);
  EXPECT_EQ(at(2).stopped, stop::none);
  EXPECT_GT(at(2).words.deadline(), now());
}

// The host does not hear the member, so it waits to join, and has a beat and no other key.
TEST_F(AgentsInStep, AnAgentOnACopyEndsThoughTheHostIsNoMemberYet) {
  add_first(1);
  make_unheard(1);
  const sim::memory before;
  add(2);
  pass(second);
  ASSERT_TRUE(has_beat(2));
  ASSERT_FALSE(has_key(2));
  const host& copy = add_copy(2, before);
  pass(2 * timing().period());
  EXPECT_EQ(copy.stopped, stop::copied);
  EXPECT_EQ(at(2).stopped, stop::none);
}

}  // namespace
}  // namespace lockflight::cluster::test
