// Several agents, one step at a time: histories in which one message is late, or an agent ends at a
// bad moment. The simulation draws its faults at random, and some of these are too rare for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/core/acquire.hpp"
#include "cluster/core/agent.hpp"
#include "cluster/core/rendezvous.hpp"
#include "cluster/sim/core_under_test.hpp"
#include "cluster/sim/etcd.hpp"
#include "cluster/sim/memory.hpp"

namespace lockflight::cluster {
namespace {

using client = acquire<sim::words_in_host>;

constexpr instant second = 1'000'000;

/// Hosts and an etcd that answers at once. Messages arrive at once as well, but for those of links
/// that are held up.
class AgentsInStep : public testing::Test {
 protected:
  struct host {
    member_id id = 0;
    sim::memory words;
    std::unique_ptr<agent> runs;
    std::set<std::string> locked;   // host locks that a client has
    std::set<std::string> awaited;  // those that the agent waits for
    bool has_left = false;
    stop stopped = stop::none;
  };

  AgentsInStep() {
    etcd_.on_epoch = [](const epoch_value&, const epoch_value&) {};
  }

  host& prepare(host& made, member_id id) {
    made.id = id;
    made.words.on_change = [](const std::string&) {};
    made.words.on_header = [] {};
    made.words.on_record = [](const std::string&, const record&) {};
    made.words.is_lock_free = [&made](const std::string& name) {
      return !made.locked.contains(name);
    };
    return made;
  }
  host& add(member_id id) {
    host& made = prepare(hosts_[id], id);
    start(made);
    return made;
  }
  /// Of agents that start from now on.
  void keep_unused_names_for(instant time) { times_.keep = time; }
  void add_first(member_id last) {
    for (member_id id = 1; id <= last; ++id) add(id);
    pass(5 * second);
  }
  host& at(member_id id) { return hosts_.at(id); }
  void start(host& on) {
    on.runs = std::make_unique<agent>(on.id, times_, on.words);
    run(on, [&](agent& a, effects& out) { a.start(now_, out); });
  }
  void retire(host& on) {
    run(on, [&](agent& a, effects& out) { a.retire(now_, out); });
  }

  void end_doubt(host& on) {
    run(on, [&](agent& a, effects& out) { a.end_doubt(now_, out); });
  }
  void lose(member_id id) { hosts_.erase(id); }

  void hold_up(member_id from, member_id to) { held_up_.insert({from, to}); }
  void let_go(member_id from, member_id to) { held_up_.erase({from, to}); }
  /// True if etcd gets what a host sends to it now.
  std::function<bool(member_id)> reaches_etcd_ = [](member_id) { return true; };

  /// What a host writes to etcd from now on is under way until carry_out_late().
  void delay_writes_of(member_id host) { delayed_ = host; }
  /// No answer to it arrives.
  void carry_out_late() {
    for (const transaction& each : late_) (void)etcd_.carry_out(each);
    late_.clear();
    delayed_ = 0;
  }

  /// No host hears another one any more.
  void cut_all() { is_cut_ = true; }
  /// No other host hears that one, while it hears them.
  void make_unheard(member_id who) { unheard_ = who; }

  void pass(instant time) {
    constexpr instant step = second / 20;
    for (const instant end = now_ + time; now_ < end; now_ += step) {
      deliver();
      std::vector<member_id> order;
      for (const auto& [id, each] : hosts_) order.push_back(id);
      if (is_last_first_) std::ranges::reverse(order);
      for (const member_id id : order) advance(hosts_.at(id));
    }
    deliver();
  }

  /// The order of the hosts in each moment.
  void set_last_first(bool is) { is_last_first_ = is; }

  /// A name with that home, and that witness if it is not 0.
  std::string name_of(member_id home, member_id witness = 0) {
    const auto homes = possible_homes(etcd_.now()->epoch->what.members);
    for (int i = 0;; ++i) {
      const std::string name = "name" + std::to_string(i);
      if (home_of(name, homes).id == home && (witness == 0 || witness_of(name, homes) == witness))
        return name;
    }
  }
  client& make_client(host& on, const std::string& name, mode wanted = mode::exclusive) {
    names_.push_back(name);
    return clients_.emplace_back(wanted, sim::words_in_host{&names_.back(), &on.words});
  }
  /// True if the client is inside in time.
  bool enters_within(instant time, host& on, client& who, const std::string& name) {
    for (const instant end = now_ + time; now_ < end; pass(second / 10))
      if (steps_inside(on, who, name)) return true;
    return false;
  }
  bool enters(host& on, client& who, const std::string& name) {
    return enters_within(6 * second, on, who, name);
  }
  /// A client that waits gives up.
  void give_up(host& on, client& who, const std::string& name) {
    who.give_up();
    release(on, name);
  }
  /// It has left, or has died inside.
  void release(host& on, const std::string& name) {
    on.locked.erase(name);
    if (on.awaited.erase(name) != 0)
      run(on, [&](agent& a, effects& out) { a.host_lock_taken(now_, name, out); });
  }
  /// A client asks for the name and gives up. The grant of the home, which is host 1, is held up.
  void ask_and_give_up(host& on, const std::string& name) {
    hold_up(1, on.id);
    client& writer = make_client(on, name);
    ASSERT_FALSE(enters(on, writer, name));
    give_up(on, writer, name);
  }
  void use(host& on, const std::string& name) {
    client& who = make_client(on, name);
    ASSERT_TRUE(enters(on, who, name));
    who.leave();
    release(on, name);
  }

  [[nodiscard]] instant now() const { return now_; }
  [[nodiscard]] bool has_cluster_key() const { return etcd_.now()->cluster.has_value(); }
  [[nodiscard]] const epoch_value& epoch() const { return etcd_.now()->epoch->what; }
  /// As if so many changes of members had been made.
  void set_epoch(epoch_number number) {
    epoch_value to = epoch();
    to.number = number;
    (void)etcd_.carry_out({{}, {{{key_kind::epoch}, to}}, {}});
  }
  /// Somebody deletes a key.
  void delete_key(key_kind kind, member_id id) { (void)etcd_.carry_out({{}, {}, {{kind, id}}}); }
  /// An agent that has the same words, and the same memory, renews.
  void renew_as_twin_of(const host& on) {
    beat_value beat = etcd_.now()->find(on.id)->beat->what;
    (void)etcd_.carry_out({{}, {{{key_kind::beat, on.id}, beat}}, {}});
  }
  /// Starts an agent on a copy of the words of that host.
  const host& add_copy(member_id of, const sim::memory& words) {
    constexpr member_id of_copies = 100;
    host& copy = prepare(hosts_[of + of_copies], of);
    copy.words.copy(words);
    copy.words.draw_number = [] { return beat_number{1'000}; };
    start(copy);
    return copy;
  }
  [[nodiscard]] bool has_key(member_id id) const {
    const member_keys* const found = etcd_.now()->find(id);
    return found != nullptr && found->member.has_value();
  }

 private:
  struct reply {
    const agent* asked;
    std::uint64_t number;
    answer what;
  };

  void advance(host& each) {
    for (auto& [from, other] : hosts_)
      if (from != each.id && other.runs && !is_cut_ && from != unheard_)
        run(each, [&](agent& a, effects& out) { a.heard(now_, from, out); });
    if (each.runs && each.runs->wake_at() <= now_)
      run(each, [&](agent& a, effects& out) { a.timer(now_, out); });
  }

  void run(host& on, const std::function<void(agent&, effects&)>& event) {
    if (!on.runs) return;
    effects out;
    event(*on.runs, out);
    for (const message& each : out.messages) links_[{on.id, each.to}].push_back(each);
    for (const submitted& each : out.transactions)
      if (delayed_ == on.id && !each.what.puts.empty())
        late_.push_back(each.what);
      else if (reaches_etcd_(on.id))
        replies_.push_back({on.runs.get(), each.number, etcd_.carry_out(each.what)});
    for (const wanted_host_lock& each : out.host_locks_wanted)
      if (on.locked.contains(each.name))
        on.awaited.insert(each.name);
      else
        run(on, [&](agent& a, effects& more) { a.host_lock_taken(now_, each.name, more); });
    on.stopped = out.stops;
    if (!out.has_left && out.stops == stop::none) return;
    on.has_left = out.has_left;
    on.runs.reset();
  }

  void deliver() {
    for (bool any = true; any;) {
      any = false;
      while (!replies_.empty()) {
        const reply next = std::move(replies_.front());
        replies_.pop_front();
        any = true;
        for (auto& [id, to] : hosts_)
          if (to.runs.get() == next.asked)
            run(to, [&](agent& a, effects& out) { a.answered(now_, next.number, next.what, out); });
      }
      for (auto& [link, queue] : links_) {
        if (is_cut_ || held_up_.contains(link)) continue;
        for (; !queue.empty(); any = true) {
          const message next = std::move(queue.front());
          queue.pop_front();
          const auto to = hosts_.find(link.second);
          if (to != hosts_.end())
            run(to->second, [&](agent& a, effects& out) { a.receive(now_, next, out); });
        }
      }
    }
  }

  bool steps_inside(host& on, client& who, const std::string& name) {
    using next = acquire_events::next;
    on.locked.insert(name);
    for (next step = who.step(now_);; step = who.step(now_)) {
      if (step == next::holds) return true;
      if (step == next::waits) return false;
      if (step == next::rings) run(on, [&](agent& a, effects& out) { a.rung(now_, name, out); });
    }
  }

  instant now_ = second;
  timing times_;
  sim::etcd etcd_;
  std::map<member_id, host> hosts_;
  std::map<std::pair<member_id, member_id>, std::deque<message>> links_;
  std::set<std::pair<member_id, member_id>> held_up_;
  bool is_cut_ = false;
  member_id unheard_ = 0;
  bool is_last_first_ = false;
  std::deque<reply> replies_;
  member_id delayed_ = 0;
  std::vector<transaction> late_;
  std::list<std::string> names_;
  std::list<client> clients_;
};

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

TEST_F(AgentsInStep, TheKeyOfTheClustersNumberIsWrittenAgain) {
  add_first(2);
  ASSERT_TRUE(has_cluster_key());
  delete_key(key_kind::cluster, 0);
  ASSERT_FALSE(has_cluster_key());
  pass(10 * second);
  EXPECT_TRUE(has_cluster_key());
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

// The agent before it may not have seen the loss.
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

}  // namespace
}  // namespace lockflight::cluster
