// Grants and records of a name: readers behind writers that gave up, and names that nobody uses.
#include "tests/names/cluster/step/agents_in_step.hpp"

namespace lockflight::cluster::test {
namespace {

// The reader of 3 comes after a writer has given up, whose request waits for the reader of 2.
TEST_F(AgentsInStep, AReaderDoesNotWaitForAWriterThatHasGivenUp) {
  add_first(3);
  const std::string name = name_of(1);
  ASSERT_TRUE(enters(at(2), make_client(at(2), name, mode::shared), name));
  client& writer = make_client(at(3), name);
  ASSERT_FALSE(enters(at(3), writer, name));
  give_up(at(3), writer, name);
  EXPECT_TRUE(enters(at(3), make_client(at(3), name, mode::shared), name));
}

TEST_F(AgentsInStep, AReaderDoesNotWaitForAWriterThatDiedWaiting) {
  add_first(3);
  const std::string name = name_of(1);
  ASSERT_TRUE(enters(at(2), make_client(at(2), name, mode::shared), name));
  ASSERT_FALSE(enters(at(3), make_client(at(3), name), name));
  release(at(3), name);  // died
  EXPECT_TRUE(enters(at(3), make_client(at(3), name, mode::shared), name));
}

// The grant is under way when the reader's request replaces the writer's.
TEST_F(AgentsInStep, AGrantForAWriterThatHasGivenUpServesAReader) {
  add_first(3);
  const std::string name = name_of(1);
  ask_and_give_up(at(3), name);
  client& reader = make_client(at(3), name, mode::shared);
  ASSERT_FALSE(enters(at(3), reader, name));
  let_go(1, 3);
  ASSERT_TRUE(enters(at(3), reader, name));
  client& next = make_client(at(2), name);
  EXPECT_FALSE(enters(at(2), next, name));
  reader.leave();
  release(at(3), name);
  EXPECT_TRUE(enters(at(2), next, name));
}

// Words that the agent makes come with a lock of the default kind.
TEST_F(AgentsInStep, AGrantForANameThatIsForgottenIsGivenBack) {
  add_first(3);
  const std::string name = name_of(1);
  ask_and_give_up(at(3), name);
  ASSERT_TRUE(at(3).words.forget_unused());
  let_go(1, 3);
  pass(second / 10);
  EXPECT_FALSE(at(3).words.has_name(name));
  client& next = make_client(at(2), name);
  ASSERT_TRUE(enters(at(2), next, name));
  EXPECT_FALSE(next.died());
}

TEST_F(AgentsInStep, AClientThatLeavesGivesBackWhatAnotherHostWants) {
  add_first(3);
  const std::string name = name_of(1);
  client& first = make_client(at(2), name);
  ASSERT_TRUE(enters(at(2), first, name));
  EXPECT_FALSE(first.give_back()) << "no other host wants it";
  client& next = make_client(at(3), name);
  ASSERT_FALSE(steps_inside(at(3), next, name));
  deliver();
  EXPECT_TRUE(leaves(at(2), first, name));
  deliver();
  EXPECT_TRUE(steps_inside(at(3), next, name));
  EXPECT_FALSE(next.died());
  EXPECT_GT(next.fence(), first.fence());
}

// A reader of another host wants the name: the host of the writer keeps it shared.
TEST_F(AgentsInStep, AWriterThatLeavesKeepsSharedForAReaderOfAnotherHost) {
  add_first(3);
  const std::string name = name_of(1);
  client& writer = make_client(at(2), name);
  ASSERT_TRUE(enters(at(2), writer, name));
  client& reader = make_client(at(3), name, mode::shared);
  ASSERT_FALSE(steps_inside(at(3), reader, name));
  deliver();
  EXPECT_TRUE(leaves(at(2), writer, name));
  EXPECT_EQ(at(2).words.ownership_of(name).owned, mode::shared);
  deliver();
  EXPECT_TRUE(steps_inside(at(3), reader, name));
}

// The client dies before it rings: the agent finds the name given back when the clients are late.
TEST_F(AgentsInStep, AClientThatDiesBetweenGivingBackAndRingingKeepsNobodyWaiting) {
  add_first(3);
  const std::string name = name_of(1);
  client& first = make_client(at(2), name);
  ASSERT_TRUE(enters(at(2), first, name));
  client& next = make_client(at(3), name);
  ASSERT_FALSE(steps_inside(at(3), next, name));
  deliver();
  first.leave();
  ASSERT_TRUE(first.give_back());
  release(at(2), name);  // died
  deliver();
  EXPECT_FALSE(steps_inside(at(3), next, name));
  EXPECT_TRUE(enters(at(3), next, name));
  EXPECT_FALSE(next.died());
}

// The epoch ends before the holder leaves: its host has claimed the name, and gives it back when
// the home of the next epoch asks for it.
TEST_F(AgentsInStep, NoClientGivesBackWhatAnEarlierEpochHasAskedFor) {
  add_first(3);
  const std::string name = name_of(1);
  client& first = make_client(at(2), name);
  ASSERT_TRUE(enters(at(2), first, name));
  client& next = make_client(at(3), name);
  ASSERT_FALSE(steps_inside(at(3), next, name));
  deliver();
  ASSERT_TRUE(first.is_revoked());
  hold_up(2, 1);  // so that no home has begun in the next epoch
  add(4);
  pass(3 * second / 2);
  EXPECT_FALSE(first.is_revoked());
  EXPECT_FALSE(leaves(at(2), first, name));
  let_go(2, 1);
  EXPECT_TRUE(enters(at(3), next, name));
  EXPECT_FALSE(next.died());
}

TEST_F(AgentsInStep, AFormerHomeForgetsItsRecordWhenTheEpochIsSettled) {
  add_first(2);
  const std::vector<identity> later{{1, 1}, {2, 1}, {3, 1}};
  int i = 0;
  const auto name = [&] { return "name" + std::to_string(i); };
  const auto now = possible_homes(epoch().members);
  while (home_of(name(), now).id != 1 || home_of(name(), later).id != 3) ++i;
  use(at(2), name());
  EXPECT_TRUE(at(1).words.record_of(name()));
  add(3);
  pass(10 * second);
  ASSERT_TRUE(epoch().settled);
  EXPECT_FALSE(at(1).words.record_of(name()));
  EXPECT_TRUE(at(3).words.record_of(name()));
}

TEST_F(AgentsInStep, AHostAndItsHomeForgetNamesThatNobodyUses) {
  keep_unused_names_for(2 * second);
  add_first(3);
  const std::string name = name_of(1), other = name_of(2);
  use(at(3), name);
  use(at(3), other);
  EXPECT_TRUE(at(1).words.record_of(name));
  EXPECT_TRUE(at(2).words.record_of(other));
  pass(30 * second);
  for (const member_id each : {1, 2, 3})
    for (const std::string& unused : {name, other}) {
      EXPECT_FALSE(at(each).words.has_name(unused)) << each;
      EXPECT_FALSE(at(each).words.record_of(unused)) << each;
    }
  // Another pass forgets other names as well.
  use(at(3), other);
  pass(30 * second);
  EXPECT_FALSE(at(3).words.has_name(other));
  EXPECT_FALSE(at(2).words.record_of(other));
}

}  // namespace
}  // namespace lockflight::cluster::test
