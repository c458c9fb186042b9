// Somebody deletes a key of the domain in etcd.
#include "tests/names/cluster/step/agents_in_step.hpp"

namespace lockflight::cluster::test {
namespace {

TEST_F(AgentsInStep, TheKeyOfTheClustersNumberIsWrittenAgain) {
  add_first(2);
  ASSERT_TRUE(has_cluster_key());
  delete_key(key_kind::cluster, 0);
  ASSERT_FALSE(has_cluster_key());
  pass(10 * second);
  EXPECT_TRUE(has_cluster_key());
}

/// Somebody deletes a key of host 2 in etcd.
class AfterADeletion : public AgentsInStep, public testing::WithParamInterface<key_kind> {};

TEST_P(AfterADeletion, NoPromiseIsShortened) {
  add_first(2);
  const std::string name = name_of(1);
  client& holder = make_client(at(2), name);
  ASSERT_TRUE(enters(at(2), holder, name));
  const instant promised = holder.valid_until();
  delete_key(GetParam(), 2);
  client& next = make_client(at(1), name);
  const bool has_entered = enters_within(60 * second, at(1), next, name);
  EXPECT_EQ(has_entered, GetParam() == key_kind::member);
  EXPECT_GE(now(), promised);
  EXPECT_EQ(at(2).words.incarnation(), has_entered ? 2 : 1);
  EXPECT_NE(epoch().find(2), nullptr);
}

TEST_P(AfterADeletion, AHostThatEndsIsTakenOff) {
  add_first(2);
  delete_key(GetParam(), 2);
  lose(2);
  pass(timing().ttl - second);
  EXPECT_NE(epoch().find(2), nullptr);
  pass(second + timing().reads_within());  // the other host reads the loss at its next renewal
  EXPECT_EQ(epoch().find(2), nullptr);
}

std::string name_of_key(const testing::TestParamInfo<key_kind>& of) {
  return of.param == key_kind::member ? "member" : of.param == key_kind::beat ? "beat" : "evicted";
}
INSTANTIATE_TEST_SUITE_P(OfAKey, AfterADeletion,
                         testing::Values(key_kind::member, key_kind::beat, key_kind::evicted),
                         name_of_key);

// The agent before this one may not have seen the loss.
TEST_F(AgentsInStep, AnAgentThatFindsItsKeyDeletedStaysOutUntilItsDeadline) {
  add_first(2);
  const instant promised = at(2).words.deadline();
  delete_key(key_kind::member, 2);
  start(at(2));
  pass(promised - now() - second / 10);
  EXPECT_EQ(at(2).words.deadline(), promised);
  EXPECT_FALSE(has_key(2));
  pass(2 * second);
  EXPECT_TRUE(has_key(2));
  EXPECT_GT(at(2).words.deadline(), now());
}

// A key that somebody has deleted is no eviction, after which the host would stay away for longer
// each time.
TEST_F(AgentsInStep, AHostWhoseKeyIsDeletedAgainAndAgainIsBackAfterEachDeadline) {
  add_first(2);
  for (int deletions = 0; deletions < 3; ++deletions) {
    const instant promised = at(2).words.deadline();
    delete_key(key_kind::member, 2);
    pass(promised - now() + 2 * second);
    EXPECT_TRUE(has_key(2)) << deletions << " deletions before this one";
  }
}

// The others may have taken the host off between the two keys.
TEST_F(AgentsInStep, AHostUsesNoKeyThatWasMadeAnew) {
  add_first(2);
  const instant promised = at(2).words.deadline();
  make_key_anew(2);
  pass(promised - now() - second / 10);
  EXPECT_EQ(at(2).words.deadline(), promised);
  pass(2 * second);
  EXPECT_EQ(at(2).words.incarnation(), 2);
  EXPECT_GT(at(2).words.deadline(), now());
}

}  // namespace
}  // namespace lockflight::cluster::test
