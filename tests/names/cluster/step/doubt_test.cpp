// An operator ends the doubt about names of hosts that were lost at once.
#include "tests/names/cluster/step/agents_in_step.hpp"

namespace lockflight::cluster::test {
namespace {

// The only host is lost, so nobody knows what it left.
TEST_F(AgentsInStep, AnOperatorEndsTheDoubt) {
  add_first(1);
  lose(1);
  for (const member_id id : {11, 12, 13}) add(id);
  pass(30 * second);
  const auto told = [&](const std::string& name) {
    client& who = make_client(at(11), name);
    EXPECT_TRUE(enters(at(11), who, name));
    const bool is = who.died();
    who.mark_consistent();
    who.leave();
    release(at(11), name);
    return is;
  };
  EXPECT_TRUE(told("before"));
  end_doubt(at(12));
  pass(3 * second);
  for (const char* name : {"before", "one", "two", "three", "four"}) EXPECT_FALSE(told(name));
  for (const member_id id : {11, 12, 13}) {  // the last one, too, since it knows of no death
    retire(at(id));
    pass(20 * second);
    EXPECT_TRUE(at(id).has_left) << id;
  }
}

// 3 is lost after the operator has spoken, and before the members can agree on it.
TEST_F(AgentsInStep, AnOperatorEndsNoDoubtAboutWhatIsLostLater) {
  add_first(4);
  hold_up(1, 2);  // so that no epoch is settled
  lose(4);
  pass(15 * second);
  end_doubt(at(1));
  lose(3);
  pass(15 * second);
  let_go(1, 2);
  pass(3 * second);
  ASSERT_TRUE(epoch().settled);
  ASSERT_FALSE(epoch().past.empty());
  end_doubt(at(1));
  pass(3 * second);
  EXPECT_TRUE(epoch().past.empty());
}

}  // namespace
}  // namespace lockflight::cluster::test
