// Links between agents: who gets which messages, in what order, over a network that breaks.
#include <gtest/gtest.h>

#include <random>

#include "link_room.hpp"

namespace lockflight::cluster::testing_links {
namespace {

using std::chrono::milliseconds;

std::vector<std::string> numbers_below(int end) {
  std::vector<std::string> all;
  for (int i = 0; i < end; ++i) all.push_back(std::to_string(i));
  return all;
}

TEST_F(Links, MessagesArriveInOrderBothWays) {
  const auto a = start(1);
  const auto b = start(2);
  a->own->set_peers({b->as_peer()});
  const std::string by_name = "localhost:" + std::to_string(a->own->port());
  b->own->set_peers({a->as_peer(by_name), b->as_peer(), {3, 1, ""}});
  EXPECT_EQ(b->own->status().size(), 1u);
  for (const std::string& each : numbers_below(1000)) {
    a->send(2, 1, each);
    b->send(1, 1, each);
  }
  ASSERT_TRUE(reach([&] { return a->received.size() == 1000 && b->received.size() == 1000; }));
  EXPECT_EQ(a->names(), numbers_below(1000));
  EXPECT_EQ(b->names(), numbers_below(1000));
  ASSERT_TRUE(reach([&] { return a->heard_of(2) > 3 && b->heard_of(1) > 3; }));
  ASSERT_TRUE(reach([&] { return a->own->status().at(0).queued == 0; }));
  ASSERT_TRUE(reach([&] { return a->own->status().at(0).round_trip.has_value(); }));
  // A machine that runs nothing of this process for three keep-alives makes both ends open their
  // connections anew, and say why; nothing else may be said.
  peer_status to_b;
  ASSERT_TRUE(reach([&] {
    to_b = a->own->status().at(0);
    return to_b.is_connected && to_b.is_reaching_us;
  }));
  EXPECT_EQ(to_b.who, b->as_peer());
  EXPECT_FALSE(to_b.has_overflowed);
  EXPECT_EQ(to_b.queued_bytes, 0u);
  for (const auto& each : {a.get(), b.get()})
    EXPECT_EQ(each->troubles.size(), std::size_t(each->troubles_with(1, "no answer") +
                                                 each->troubles_with(2, "no answer")));
}

TEST_F(Links, ThreeAgentsTalkToEachOther) {
  std::vector<std::unique_ptr<station>> all;
  for (member_id id = 1; id <= 3; ++id) all.push_back(start(id));
  for (const auto& each : all) {
    std::vector<peer> others;
    for (const auto& other : all)
      if (other != each) others.push_back(other->as_peer());
    each->own->set_peers(others);
  }
  for (const std::string& name : numbers_below(300))
    for (const auto& from : all)
      for (const auto& to : all)
        if (from != to) from->send(to->settings.self, 1, name);
  ASSERT_TRUE(reach([&] {
    return std::all_of(all.begin(), all.end(),
                       [](const auto& s) { return s->received.size() == 600; });
  }));
  for (const auto& to : all)
    for (const auto& from : all) {
      if (from == to) continue;
      std::vector<std::string> names;
      for (const message& each : to->received)
        if (each.from == from->settings.self) names.push_back(each.name);
      EXPECT_EQ(names, numbers_below(300));
    }
}

TEST_F(Links, CutsLoseNothingAndRepeatNothing) {
  constexpr int count = 100'000;
  const auto a = start(1);
  const auto b = start(2);
  const auto between = proxy::before(io, b->own->port());
  std::mt19937 random(2);
  // One connection in five breaks within its handshake, or the hello.
  between->life = [&] {
    return std::size_t{1} + (random() % 5 == 0 ? random() % 1'200 : random() % 600'000);
  };
  a->own->set_peers({b->as_peer(between->address())});
  int sent = 0;
  ASSERT_TRUE(reach([&] {
    for (int i = 0; i < 500 && sent < count && a->own->status().at(0).queued < 10'000; ++i)
      a->send(2, 1, std::to_string(sent++));
    return b->received.size() >= count && a->own->status().at(0).queued == 0;
  }));
  ASSERT_EQ(b->received.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(b->names(), numbers_below(count));
  EXPECT_GT(between->connections(), 10);
  between->close();
}

TEST_F(Links, WhatIsSentBeforeTheAddressIsKnownArrives) {
  const auto a = start(1);
  const auto b = start(2);
  a->send(2, 2, "first");
  a->send(2, 2, "second");
  a->own->set_peers({b->as_peer()});
  ASSERT_TRUE(reach([&] { return b->received.size() == 2; }));
  EXPECT_EQ(b->names(), (std::vector<std::string>{"first", "second"}));
}

TEST_F(Links, WhatWaitsForAnAddressEndsWithItsEpoch) {
  const auto a = start(1);
  const auto b = start(2);
  a->send(2, 1, "old");
  a->send(3, 2, "to another");
  a->send(2, 2, "new");
  a->own->set_peers({b->as_peer()});
  ASSERT_TRUE(reach([&] { return !b->received.empty(); }));
  EXPECT_EQ(b->names(), (std::vector<std::string>{"new"}));
}

TEST_F(Links, APeerThatLeavesLosesItsQueueAndMayComeBack) {
  const auto a = start(1);
  const auto b = start(2);
  a->own->set_peers({b->as_peer()});
  a->send(2, 1, "1");
  ASSERT_TRUE(reach([&] { return b->received.size() == 1; }));
  a->send(2, 1, "lost");
  a->own->set_peers({});
  EXPECT_TRUE(a->own->status().empty());
  a->send(2, 2, "2");
  run_for(milliseconds(100));
  a->own->set_peers({b->as_peer()});
  a->send(2, 2, "3");
  ASSERT_TRUE(reach([&] { return b->received.size() == 3; }));
  EXPECT_EQ(b->names(), (std::vector<std::string>{"1", "2", "3"}));
}

TEST_F(Links, APeerThatMovesKeepsItsQueue) {
  const auto a = start(1);
  const auto b = start(2);
  a->own->set_peers({b->as_peer("127.0.0.1:1")});
  a->send(2, 1, "1");
  ASSERT_TRUE(reach([&] { return a->troubles_with(2, "cannot reach 127.0.0.1:1") == 1; }));
  for (int i = 2; i < 6; ++i) {
    const auto between = proxy::before(io, b->own->port());
    a->own->set_peers({b->as_peer(between->address())});
    a->send(2, 1, std::to_string(i));
    ASSERT_TRUE(reach([&] { return b->received.size() == static_cast<std::size_t>(i); }));
    between->close();
  }
  EXPECT_EQ(b->names(), (std::vector<std::string>{"1", "2", "3", "4", "5"}));
}

TEST_F(Links, AnAgentThatForgetsWhatItHasAcknowledgedIsRefused) {
  const auto a = start(1);
  auto b = start(2);
  a->own->set_peers({b->as_peer()});
  a->send(2, 1, "1");
  ASSERT_TRUE(reach([&] { return !b->received.empty() && a->own->status().at(0).queued == 0; }));
  link_settings again = b->settings;
  again.address = b->own->address();
  b.reset();
  b = start(again);
  a->send(2, 1, "2");
  ASSERT_TRUE(reach([&] { return a->troubles_with(2, "had acknowledged 1") == 1; }));
  EXPECT_TRUE(b->received.empty());
}

TEST_F(Links, AnAgentThatIsStartedAgainBeginsANewStream) {
  auto a = start(1, 1);
  const auto b = start(2);
  a->own->set_peers({b->as_peer()});
  a->send(2, 1, "1");
  a->send(2, 1, "2");
  ASSERT_TRUE(reach([&] { return b->received.size() == 2; }));
  // The older agent still runs when the newer one begins.
  const auto newer = start(1, 2);
  newer->own->set_peers({b->as_peer()});
  newer->send(2, 2, "3");
  ASSERT_TRUE(reach([&] { return b->received.size() == 3; }));
  a->send(2, 2, "from the past");
  ASSERT_TRUE(reach([&] { return a->troubles_with(2, "a later agent than number 1") == 1; }));
  newer->send(2, 2, "4");
  ASSERT_TRUE(reach([&] { return b->received.size() == 4; }));
  EXPECT_EQ(b->names(), (std::vector<std::string>{"1", "2", "3", "4"}));
  EXPECT_FALSE(a->own->status().at(0).is_connected);
}

TEST_F(Links, APeerThatEtcdHasAsANewerAgentIsNotHeardAsAnOlderOne) {
  const auto a = start(1, 1);
  const auto b = start(2);
  b->own->set_peers({{1, 2, "127.0.0.1:1"}});
  a->own->set_peers({b->as_peer()});
  a->send(2, 1, "from the past");
  ASSERT_TRUE(reach([&] { return a->troubles_with(2, "a later agent") == 1; }));
  EXPECT_TRUE(b->received.empty());
}

TEST_F(Links, WhatIsSentToAnAgentThatHasEndedIsLost) {
  const auto a = start(1);
  auto b = start(2, 1);
  a->own->set_peers({b->as_peer()});
  a->send(2, 1, "1");
  ASSERT_TRUE(reach([&] { return b->received.size() == 1; }));
  link_settings again = b->settings;
  again.address = b->own->address();
  again.agent = 2;
  b.reset();
  b = start(again);
  a->send(2, 1, "lost");
  ASSERT_TRUE(reach([&] { return a->troubles_with(2, "has number 2, expected is 1") == 1; }));
  EXPECT_TRUE(b->received.empty());
  a->own->set_peers({b->as_peer()});
  a->send(2, 2, "2");
  ASSERT_TRUE(reach([&] { return b->received.size() == 1; }));
  EXPECT_EQ(b->names(), (std::vector<std::string>{"2"}));
}

TEST_F(Links, AnotherMemberAtTheAddressGetsNothing) {
  const auto a = start(1);
  const auto c = start(3);
  a->own->set_peers({{2, 1, c->own->address()}});
  a->send(2, 1, "not for c");
  ASSERT_TRUE(reach([&] { return a->troubles_with(2, "member 0000000000000003 is there") == 1; }));
  EXPECT_TRUE(c->received.empty());
  EXPECT_EQ(a->heard_of(2), 0);
}

TEST_F(Links, CallbacksMayUseAndDestroyTheLinks) {
  const auto a = start(1);
  const auto b = start(2);
  std::unique_ptr<links> c;
  int calls = 0;
  link_settings settings = a->settings;
  settings.self = 3;
  c = std::make_unique<links>(io, settings,
                              link_callbacks{[&](const message& what) {
                                               ++calls;
                                               if (what.name != "end") return c->set_peers({});
                                               c.reset();
                                             },
                                             [](member_id) {}, [](member_id, const auto&) {}});
  c->set_peers({a->as_peer(), b->as_peer()});
  a->own->set_peers({{3, 1, c->address()}});
  for (const char* const each : {"1", "2", "end", "not any more"}) a->send(3, 1, each);
  ASSERT_TRUE(reach([&] { return !c; }));
  run_for(milliseconds(100));
  EXPECT_EQ(calls, 3);
}

TEST_F(Links, ListensWhereItIsToldOrSaysWhyNot) {
  const auto a = start(1);
  link_settings settings = a->settings;
  const auto says = [&](const std::string& address) {
    settings.address = address;
    try {
      (void)start(settings);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(says(a->own->address()),
            "cannot listen at '" + a->own->address() + "': Address already in use");
  for (const char* const each : {"", "127.0.0.1", "127.0.0.1:", ":1", "::1:0", "[127.0.0.1]:0",
                                 "127.0.0.1:65536", "127.0.0.1:x"})
    EXPECT_EQ(says(each), "cannot listen at '" + std::string(each) + "': it is not HOST:PORT");
  EXPECT_EQ(says("192.0.2.1:0"), "cannot listen at '192.0.2.1:0': Cannot assign requested address");
  EXPECT_EQ(says("localhost:0"), "");
  settings.address = "[::1]:0";
  if (says("[::1]:0").empty()) {
    EXPECT_EQ(start(settings)->own->address().substr(0, 6), "[::1]:");
  }
}

}  // namespace
}  // namespace lockflight::cluster::testing_links
