// Hosts that join, leave, are evicted and come back, up to the last epoch.
#include "tests/names/cluster/step/agents_in_step.hpp"

namespace lockflight::cluster::test {
namespace {

// Both renew at the same moments, and one of them now before the other and now after it. So each
// sees every second renewal of the other.
TEST_F(AgentsInStep, OneOfTwoHostsIsEvictedThatRenewAtTheSameMoments) {
  add_first(2);
  cut_all();
  const epoch_number before = epoch().number;
  constexpr int periods = 80;
  for (int i = 0; i < periods && epoch().number == before; ++i) {
    set_last_first(i % 2 != 0);
    pass(timing().period() + second / 60);  // the moment of the next renewal
  }
  EXPECT_EQ(epoch().members.size(), 1);
}

// 3 hears the others and is not heard, as behind a wrong address. It stays away for longer each
// time.
TEST_F(AgentsInStep, AHostThatIsEvictedAgainAndAgainJoinsLessOften) {
  add_first(3);
  make_unheard(3);
  const instant of_round = 16 * timing().ttl;
  std::vector<epoch_number> epochs;
  for (int i = 0; i < 4; ++i) {
    const epoch_number before = epoch().number;
    pass(of_round);
    epochs.push_back(epoch().number - before);
  }
  EXPECT_GT(epochs.front(), epochs.back());
  constexpr epoch_number of_one_stay = 2;
  EXPECT_LE(epochs.back(), 2 * of_one_stay);
  EXPECT_GT(epochs[2] + epochs[3], 0) << "it tries again";
  make_unheard(0);
  pass(timing().longest_absence + 2 * timing().ttl);
  EXPECT_NE(epoch().find(3), nullptr);
  // A host that has been a member for long is not what it was.
  pass(timing().proves_itself_within());
  make_unheard(3);
  for (int i = 0; i < 10 && epoch().find(3) != nullptr; ++i) pass(timing().ttl);
  ASSERT_EQ(epoch().find(3), nullptr);
  make_unheard(0);
  pass(2 * timing().ttl);
  EXPECT_NE(epoch().find(3), nullptr);
}

// 2 does not reach etcd for longer than the TTL, and 1 reaches it now and then, as in short outages
// that follow each other. 1 cannot know that 2 was not kept from renewing by them.
TEST_F(AgentsInStep, ShortOutagesThatFollowEachOtherExpelNobody) {
  add_first(2);
  const epoch_number before = epoch().number;
  const instant between = timing().reads_within() + second / 20;
  instant last = now();
  reaches_etcd_ = [&](member_id who) {
    if (who == 1 && now() - last >= between) last = now();
    return who == 1 && now() == last;
  };
  pass(3 * between);
  EXPECT_GE(last, 2 * between) << "1 has read";
  reaches_etcd_ = [](member_id) { return true; };
  pass(second);
  EXPECT_EQ(epoch().number, before);
}

// 2 leaves, and 1 dies before it has made an epoch without 2.
TEST_F(AgentsInStep, AHostThatJoinsDoesNotWaitForOneThatHasLeft) {
  add_first(2);
  retire(at(2));
  constexpr int moments = 200;
  for (int i = 0; i < moments && !at(2).has_left; ++i) pass(second / 20);
  ASSERT_TRUE(at(2).has_left);
  lose(1);
  EXPECT_EQ(epoch().find(2), nullptr);  // its last transaction has made that epoch
  add(3);
  pass(30 * second);
  ASSERT_NE(epoch().find(3), nullptr);
  EXPECT_EQ(epoch().members.size(), 1);
}

// 1 is the home, 2 its witness, whose answer is late. Meanwhile 3 gets the name again, and a second
// client dies there.
TEST_F(AgentsInStep, ALateConfirmationDoesNotHideTheNextDeath) {
  add_first(4);
  const std::string name = name_of(1, 2);
  ASSERT_TRUE(enters(at(3), make_client(at(3), name), name));
  release(at(3), name);  // died inside
  hold_up(1, 2);
  client& repairs = make_client(at(4), name);
  ASSERT_TRUE(enters(at(4), repairs, name));
  EXPECT_TRUE(repairs.died());
  repairs.mark_consistent();
  repairs.leave();
  release(at(4), name);
  client& again = make_client(at(3), name);
  ASSERT_TRUE(enters(at(3), again, name));
  EXPECT_FALSE(again.died());
  hold_up(3, 1);
  release(at(3), name);  // died inside
  client& last = make_client(at(4), name);
  ASSERT_FALSE(enters(at(4), last, name));
  let_go(1, 2);  // the witness is told, and the home confirms what it may
  pass(second / 10);
  add(5);  // the next epoch: what is still under way is dropped
  pass(3 * second / 2);
  let_go(3, 1);
  ASSERT_TRUE(enters(at(4), last, name));
  EXPECT_TRUE(last.died());
}

// 3 gives a name back, and the next epoch drops the message. So it has claimed nothing since.
TEST_F(AgentsInStep, AHostLeavesThatGaveBackInAnEarlierEpoch) {
  add_first(3);
  const std::string name = name_of(1);
  use(at(3), name);
  hold_up(3, 1);
  client& waits = make_client(at(2), name);
  ASSERT_FALSE(enters(at(2), waits, name));
  add(4);
  pass(3 * second / 2);
  let_go(3, 1);
  ASSERT_TRUE(enters(at(2), waits, name));
  waits.leave();
  release(at(2), name);
  retire(at(3));
  pass(10 * second);
  EXPECT_TRUE(at(3).has_left);
  EXPECT_FALSE(has_key(3));
}

TEST_F(AgentsInStep, AnAgentThatIsEndedBeforeItHasReadItsKeysLeavesInOrder) {
  add_first(3);
  const std::string name = name_of(1);
  use(at(3), name);
  start(at(3));  // another agent, within the time to live
  retire(at(3));
  EXPECT_FALSE(at(3).has_left);
  client& waits = make_client(at(2), name);
  ASSERT_TRUE(enters(at(2), waits, name));
  EXPECT_FALSE(waits.died());
  pass(10 * second);
  EXPECT_TRUE(at(3).has_left);
  EXPECT_FALSE(has_key(3));
}

// Its peer's link is held up, so that no epoch is settled meanwhile.
TEST_F(AgentsInStep, AnAgentThatStartsAgainAndAgainAddsLittleToThePast) {
  add_first(3);
  const std::string name = name_of(1);
  ASSERT_TRUE(enters(at(3), make_client(at(3), name), name));
  release(at(3), name);  // died inside
  hold_up(1, 2);
  for (int i = 0; i < 50; ++i) {
    start(at(3));
    pass(second);
  }
  ASSERT_FALSE(epoch().settled);
  ASSERT_GT(epoch().number, 50u);
  EXPECT_LE(epoch().past.size(), 2u);
  EXPECT_EQ(epoch().seals.size(), seals_most);  // of the last epochs alone
  let_go(1, 2);
  pass(3 * second);
  EXPECT_TRUE(epoch().settled);
  client& next = make_client(at(2), name);
  ASSERT_TRUE(enters(at(2), next, name));
  EXPECT_TRUE(next.died());
}

TEST_F(AgentsInStep, NoEpochFollowsTheLast) {
  add_first(2);
  set_epoch(last_epoch - 1);
  pass(3 * second);
  const std::string name = name_of(1);
  use(at(2), name);
  add(3);
  pass(5 * second);
  ASSERT_EQ(epoch().number, last_epoch);
  use(at(3), name);
  add(4);
  lose(3);
  pass(30 * second);
  EXPECT_EQ(epoch().number, last_epoch);
  EXPECT_EQ(epoch().members.size(), 3u);
  client& waits = make_client(at(4), name);
  EXPECT_FALSE(enters(at(4), waits, name));
  use(at(1), name_of(2));  // a name that the lost host does not own
  EXPECT_LE(at(1).words.state_of(name_of(2)).last.epoch, last_epoch);
}

TEST_F(AgentsInStep, TheLastMemberStaysInTheLastEpoch) {
  add_first(1);
  set_epoch(last_epoch - 1);
  pass(3 * second);
  retire(at(1));
  pass(10 * second);
  EXPECT_EQ(epoch().number, last_epoch);
  EXPECT_FALSE(at(1).has_left);
}

TEST_F(AgentsInStep, AHostThatIsNoMemberEndsAtOnce) {
  add_first(2);
  host& third = add(3);
  hold_up(1, 3);
  retire(third);
  pass(2 * second);
  EXPECT_TRUE(third.has_left);
  EXPECT_FALSE(has_key(3));
}

// 2 does not hear 1, and ends before it has joined.
TEST_F(AgentsInStep, TheBeatOfAHostThatDidNotJoinGoesWithTheNextMemberThatIsTakenOff) {
  add_first(1);
  make_unheard(1);
  add(2);
  pass(second);
  ASSERT_TRUE(has_beat(2));
  lose(2);
  make_unheard(0);
  const epoch_number before = epoch().number;
  pass(2 * timing().ttl);
  EXPECT_EQ(epoch().number, before) << "a beat is no reason for another epoch";
  add(3);
  pass(5 * second);
  ASSERT_NE(epoch().find(3), nullptr);
  EXPECT_TRUE(has_beat(2));
  lose(3);
  pass(2 * timing().ttl);
  ASSERT_EQ(epoch().find(3), nullptr);
  EXPECT_FALSE(has_beat(2));
}

}  // namespace
}  // namespace lockflight::cluster::test
