// The rules of a home, one by one, and what a host forgets.
#include "names/cluster/core/home.hpp"

#include <gtest/gtest.h>

#include "lab/cluster/memory.hpp"
#include "names/cluster/core/owner.hpp"
#include "names/cluster/core/rendezvous.hpp"

namespace lockflight::cluster {
namespace {

constexpr member_id a = 1;
constexpr member_id b = 2;
constexpr member_id c = 3;

class Home : public testing::Test {
 protected:
  Home() {
    words.on_record = [](const std::string&, const record&) {};
    now.number = 5;
    now.members = {{{a, 1}, 1}, {{b, 1}, 1}, {{c, 1}, 1}};
  }

  /// What has been sent since the last call, to whom.
  template <class Body>
  std::vector<std::pair<member_id, Body>> take() {
    std::vector<std::pair<member_id, Body>> of_kind;
    for (const message& each : sent)
      if (const auto* found = std::get_if<Body>(&each.what)) of_kind.push_back({each.to, *found});
    sent.clear();
    return of_kind;
  }

  void begin() { tested.begin(now, b, words, out); }  // b is its witness
  void ask(member_id who, mode wanted) { tested.requested(who, wanted, now, words, out); }
  void give(member_id who, give_back what) { tested.given_back(who, what, now, words, out); }

  epoch_value now;
  sim::memory words;
  std::vector<message> sent;
  outbox out{a, 5, sent};
  home tested{"x"};
};

TEST_F(Home, GrantsNothingBeforeItBegins) {
  ask(b, mode::exclusive);
  EXPECT_TRUE(sent.empty());
  begin();
  const auto granted = take<grant>();
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_EQ(granted[0].first, b);
  EXPECT_EQ(granted[0].second.last, (token{5, 0}));
}

TEST_F(Home, RecordsTheOwnerBeforeTheGrant) {
  begin();
  ask(b, mode::exclusive);
  EXPECT_EQ(words.record_of("x")->exclusive, (identity{b, 1}));
}

TEST_F(Home, GrantsConsecutiveReadersTogether) {
  begin();
  ask(b, mode::shared);
  ask(c, mode::shared);
  EXPECT_EQ(take<grant>().size(), 2u);
}

TEST_F(Home, RevokesAgainForAWriter) {
  begin();
  ask(b, mode::exclusive);
  ask(c, mode::shared);
  ask(a, mode::exclusive);
  EXPECT_EQ(take<revoke>().size(), 1u);
  give(b, {mode::shared, {5, 1}, false});
  const auto revoked = take<revoke>();
  ASSERT_EQ(revoked.size(), 2u);
  EXPECT_EQ(revoked[0].second.wanted, mode::exclusive);
}

// The client that wanted more has given up.
TEST_F(Home, ARequestReplacesOneForMore) {
  begin();
  ask(b, mode::shared);
  ask(c, mode::exclusive);
  ask(c, mode::shared);
  const auto granted = take<grant>();
  ASSERT_EQ(granted.size(), 2u);
  EXPECT_EQ(granted[1].first, c);
  EXPECT_EQ(granted[1].second.granted, mode::shared);
}

// b has been revoked for a request that is replaced then. Its answer would cross the grant.
TEST_F(Home, GrantsNothingToAHostBeforeItAnswersTheRevocation) {
  begin();
  ask(b, mode::shared);
  ask(c, mode::exclusive);
  ask(b, mode::exclusive);
  EXPECT_EQ(take<revoke>().size(), 1u);
  ask(c, mode::shared);
  EXPECT_TRUE(take<grant>().empty());
  give(b, {mode::none, {5, 0}, false});
  const auto granted = take<grant>();
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_EQ(granted[0].first, b);
  EXPECT_EQ(granted[0].second.granted, mode::exclusive);
}

TEST_F(Home, ARequestForMoreComesLaterThanOneForLess) {
  begin();
  ask(b, mode::exclusive);
  ask(c, mode::shared);
  ask(a, mode::exclusive);
  ask(c, mode::exclusive);
  sent.clear();
  give(b, {mode::shared, {5, 1}, false});
  const auto granted = take<grant>();
  ASSERT_EQ(granted.size(), 1u);
  EXPECT_EQ(granted[0].second.granted, mode::shared);
}

TEST_F(Home, BelievesTheClaimOfEqualTokens) {
  tested.collect(b, claim{mode::none, {4, 7}, false});
  tested.collect(record{4, {4, 7}, true, std::nullopt});
  begin();
  EXPECT_FALSE(words.record_of("x")->died);
}

TEST_F(Home, BelievesTheRecordOfTheLatestEpoch) {
  tested.collect(record{4, {2, 1}, true, std::nullopt});
  tested.collect(record{3, {3, 9}, false, std::nullopt});
  begin();
  EXPECT_TRUE(words.record_of("x")->died);
}

TEST_F(Home, IsInDoubtWhenAFormerHomeIsGone) {
  now.past = {{4, {{9, 1}}, false, {}}};
  begin();
  EXPECT_TRUE(words.record_of("x")->died);
  EXPECT_EQ(words.record_of("x")->last, (token{5, 0}));
}

TEST_F(Home, IsInNoDoubtWhenSomebodyOwnsTheName) {
  now.past = {{4, {{9, 1}}, false, {}}};
  tested.collect(b, claim{mode::shared, {3, 2}, false});
  begin();
  EXPECT_FALSE(words.record_of("x")->died);
}

TEST_F(Home, IsInNoDoubtIfItsFormerHomeAloneIsGone) {
  now.past = {{4, {{a, 1}, {9, 1}}, false, {}}};
  begin();
  EXPECT_FALSE(words.record_of("x")->died);
}

TEST_F(Home, IsInDoubtIfItsFormerHomeAndAnotherMemberAreGone) {
  now.past = {{4, {{a, 1}, {9, 1}, {10, 1}}, false, {}}};
  ASSERT_NE(home_of("x", now.past[0].members).id, a);
  begin();
  EXPECT_TRUE(words.record_of("x")->died);
}

TEST_F(Home, IsInDoubtIfAWitnessHasItsMark) {
  tested.collect(record{3, {3, 4}, false, std::nullopt});
  tested.collect(witness_report{4});
  begin();
  EXPECT_TRUE(words.record_of("x")->died);
}

TEST_F(Home, IsInNoDoubtWithARecordThatIsLaterThanTheMark) {
  tested.collect(record{4, {3, 4}, false, std::nullopt});
  tested.collect(witness_report{3});
  begin();
  EXPECT_FALSE(words.record_of("x")->died);
}

TEST_F(Home, OwnsANameItselfWhenItsWitnessKnows) {
  begin();
  ask(a, mode::exclusive);
  EXPECT_EQ(words.record_of("x")->exclusive, std::nullopt);
  const auto requests = take<witness_request>();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].first, b);
  tested.witnessed(now, words, out);
  EXPECT_EQ(take<grant>().size(), 1u);
}

TEST_F(Home, TakesADeathWhenItsWitnessKnows) {
  begin();
  ask(c, mode::exclusive);
  sent.clear();
  give(c, {mode::none, {5, 3}, true});
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<witness_request>(sent[0].what));
  sent.clear();
  tested.witnessed(now, words, out);
  const auto confirmed = take<taken>();
  ASSERT_EQ(confirmed.size(), 1u);
  EXPECT_EQ(confirmed[0].first, c);
}

TEST_F(Home, ConfirmsNothingToAHostThatHasTheNameAgain) {
  begin();
  ask(c, mode::exclusive);
  give(c, {mode::none, {5, 1}, true});
  ask(b, mode::exclusive);
  give(b, {mode::none, {5, 2}, false});
  ask(c, mode::exclusive);
  sent.clear();
  tested.witnessed(now, words, out);
  EXPECT_TRUE(take<taken>().empty());
}

TEST_F(Home, IsForgottenAfterTheHostsHaveForgottenTheName) {
  now.settled = true;
  begin();
  ask(c, mode::exclusive);
  EXPECT_FALSE(tested.is_unused(now));
  give(c, {mode::none, {5, 3}, false});
  EXPECT_TRUE(tested.is_unused(now) && tested.is_remembered());
  sent.clear();
  tested.ask_hosts_to_forget(out);
  EXPECT_EQ(take<forget>().size(), 1u);
  tested.forgotten_by(c);
  EXPECT_TRUE(tested.is_unused(now) && !tested.is_remembered());
}

TEST_F(Home, IsNotForgottenBeforeTheEpochIsSettled) {
  begin();
  ask(c, mode::exclusive);
  give(c, {mode::none, {5, 3}, false});
  EXPECT_FALSE(tested.is_unused(now));
  now.settled = true;
  EXPECT_TRUE(tested.is_unused(now));
}

// An epoch ended before the host got `taken`, so that it says the same in each epoch: when the home
// has forgotten the name, nothing would say that the death was dealt with.
TEST_F(Home, IsRememberedByAHostThatClaimsWhatItGaveBackBefore) {
  now.settled = true;
  tested.collect(b, claim{mode::none, {3, 2}, true});
  tested.collect(record{4, {4, 5}, false, std::nullopt});
  begin();
  EXPECT_FALSE(words.record_of("x")->died);
  EXPECT_TRUE(tested.is_unused(now) && tested.is_remembered());
  tested.forgotten_by(b);
  EXPECT_FALSE(tested.is_remembered());
}

TEST_F(Home, TellsItsWitnessOfADeathWhenItBegins) {
  tested.collect(record{4, {4, 5}, true, std::nullopt});
  begin();
  EXPECT_EQ(take<witness_request>().size(), 1u);
  EXPECT_TRUE(tested.awaits_witness());
}

TEST(Owner, ForgetsWhatItGaveBack) {
  sim::memory words;
  words.on_change = [](const std::string&) {};
  std::vector<message> sent;
  outbox out{b, 5, sent};
  ASSERT_TRUE(words.swap_state("x", {}, {{3, 2}, false, true}));
  ASSERT_TRUE(owner::claim_of("x", words));
  owner("x").forget(a, words, out);
  EXPECT_FALSE(owner::claim_of("x", words));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<forgotten>(sent[0].what));
}

// The host has given the name back, and the revocation was under way. Else its next client that
// wants more would give back a name for which the home has not asked.
TEST(Owner, ForgetsARevocationOfWhatItDoesNotOwn) {
  sim::memory words;
  words.on_change = [](const std::string&) {};
  std::vector<message> sent;
  outbox out{b, 5, sent};
  effects asks;
  owner tested("x");
  tested.revoked(a, mode::exclusive, 1, words, asks, out);
  ASSERT_TRUE(words.swap_ownership("x", {}, {mode::shared, mode::exclusive, words.incarnation()}));
  tested.consider(a, words, out);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<request>(sent[0].what));
}

// Clients of a host that shares a name give nothing back.
TEST(Owner, WaitsForTheHostLockAtOnceIfItSharesTheName) {
  sim::memory words;
  words.on_change = [](const std::string&) {};
  std::vector<message> sent;
  outbox out{b, 5, sent};
  effects asks;
  ASSERT_TRUE(words.swap_ownership("x", {}, {mode::shared, mode::none, words.incarnation()}));
  owner tested("x");
  tested.revoked(a, mode::exclusive, 1, words, asks, out);
  EXPECT_EQ(words.ownership_of("x").revoked, mode::none);
  ASSERT_EQ(asks.host_locks_wanted.size(), 1u);
  EXPECT_FALSE(asks.host_locks_wanted[0].if_free);
}

// A writer of another host comes while the word says that a reader wants the name.
TEST(Owner, RevokesForTheGreaterOfTwoModes) {
  sim::memory words;
  words.on_change = [](const std::string&) {};
  std::vector<message> sent;
  outbox out{b, 5, sent};
  effects asks;
  ASSERT_TRUE(words.swap_ownership("x", {}, {mode::exclusive, mode::none, words.incarnation()}));
  owner tested("x");
  tested.revoked(a, mode::shared, 1, words, asks, out);
  EXPECT_EQ(words.ownership_of("x").revoked, mode::shared);
  tested.revoked(a, mode::exclusive, 2, words, asks, out);
  EXPECT_EQ(words.ownership_of("x").revoked, mode::exclusive);
  EXPECT_EQ(tested.clients_until(), 2);
}

// Claims with the same token come from hosts of which one knows of the death.
TEST_F(Home, BelievesTheWorseOfTwoClaimsWithTheSameToken) {
  tested.collect(b, claim{mode::none, {4, 7}, true});
  tested.collect(c, claim{mode::none, {4, 7}, false});
  begin();
  EXPECT_TRUE(words.record_of("x")->died);
}

TEST_F(Home, ServesTheRequestsBehindOneThatIsAnswered) {
  begin();
  ask(b, mode::exclusive);
  ask(c, mode::shared);
  ask(b, mode::shared);
  ask(a, mode::shared);
  sent.clear();
  give(b, {mode::shared, {5, 1}, false});
  EXPECT_EQ(take<grant>().size(), 2u);  // to a and to c; b has what it wants
}

TEST_F(Home, OwnsANameItselfAtOnceIfNobodyCanBeItsWitness) {
  tested.begin(now, std::nullopt, words, out);
  ask(a, mode::exclusive);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<grant>(sent[0].what));
}

TEST_F(Home, IsNotForgottenBeforeItsWitnessHasAnswered) {
  now.settled = true;
  begin();
  EXPECT_TRUE(tested.is_unused(now));
  ask(a, mode::exclusive);
  EXPECT_FALSE(tested.is_unused(now));
}

TEST_F(Home, StaysInDoubtAfterTheEpochIsSettled) {
  now.past = {{2, {{9, 1}}, true, {{9, 1}}}};
  begin();
  EXPECT_TRUE(words.record_of("x")->died);
}

TEST_F(Home, IsInNoDoubtWithARecordThatIsLater) {
  now.past = {{2, {{9, 1}}, true, {{9, 1}}}};
  tested.collect(record{3, {3, 4}, false, std::nullopt});
  begin();
  EXPECT_FALSE(words.record_of("x")->died);
}

}  // namespace
}  // namespace lockflight::cluster
