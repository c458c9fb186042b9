// Links between agents: peers and networks that do not work; and how long a message takes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <functional>
#include <iostream>

#include "link_room.hpp"

namespace lockflight::cluster::testing_links {
namespace {

using std::chrono::milliseconds;

using LinkFaults = Links;

TEST_F(LinkFaults, APeerThatStopsReadingIsDialledAgain) {
  const auto a = start(1);
  const auto b = start(2);
  const auto between = proxy::before(io, b->own->port());
  a->own->set_peers({b->as_peer(between->address())});
  ASSERT_TRUE(gets_through(*a, *b));
  between->stops = true;
  for (int i = 0; i < 2'000; ++i) a->send(2, 1, std::string(1'000, 'x'));
  ASSERT_TRUE(reach([&] { return a->troubles_with(2, "no answer") > 0; }));
  EXPECT_LT(b->received.size(), 2'001u);
  between->go_on();
  ASSERT_TRUE(reach([&] { return b->received.size() == 2'001; }));
  run_for(milliseconds(50));
  EXPECT_EQ(b->received.size(), 2'001u);
  between->close();
}

TEST_F(LinkFaults, APeerWhoseQueueOverflowsIsNotHeardUntilTheNextEpoch) {
  options.queued_most = std::size_t{1} << 20;
  const auto a = start(1);
  const auto b = start(2);
  const auto between = proxy::before(io, b->own->port());
  a->own->set_peers({b->as_peer(between->address())});
  ASSERT_TRUE(gets_through(*a, *b));
  between->stops = true;
  for (int i = 0; i < 2'000; ++i) a->send(2, 7, std::to_string(i) + " " + std::string(1'000, 'x'));
  ASSERT_TRUE(reach([&] { return a->troubles_with(2, "counts as not heard") == 1; }));
  const peer_status then = a->own->status().at(0);
  EXPECT_TRUE(then.has_overflowed && !then.is_connected && then.queued == 0);
  between->go_on();
  a->heard.clear();
  a->send(2, 7, "lost");
  run_for(milliseconds(500));
  EXPECT_EQ(a->heard_of(2), 0);
  a->send(2, 8, "next epoch");
  ASSERT_TRUE(reach([&] { return b->received.back().epoch == 8; }));
  EXPECT_EQ(b->received.back().name, "next epoch");
  ASSERT_TRUE(reach([&] { return a->heard_of(2) > 0; }));
  // What arrived of the epoch are its first messages.
  for (std::size_t i = 1; i + 1 < b->received.size(); ++i)
    EXPECT_EQ(b->received[i].name.substr(0, b->received[i].name.find(' ')), std::to_string(i - 1));
  between->close();
}

TEST_F(LinkFaults, AHalfOpenConnectionIsDialledAgain) {
  const auto a = start(1);
  const auto b = start(2);
  const auto between = proxy::before(io, b->own->port());
  a->own->set_peers({b->as_peer(between->address())});
  ASSERT_TRUE(gets_through(*a, *b));
  between->swallows_requests = between->swallows_answers = true;
  a->send(2, 1, "swallowed");
  ASSERT_TRUE(reach([&] { return a->troubles_with(2, "no answer") > 0; }));
  // The acceptor notices as well.
  b->own->set_peers({a->as_peer()});
  ASSERT_TRUE(reach([&] { return !b->own->status().at(0).is_reaching_us; }));
  const int connections = between->connections();
  between->swallows_requests = between->swallows_answers = false;
  between->cut();  // what has swallowed a part of a handshake does not go on
  ASSERT_TRUE(reach([&] { return b->received.size() == 2; }));
  EXPECT_GT(between->connections(), connections);
  EXPECT_EQ(b->received.back().name, "swallowed");
  between->close();
}

TEST_F(LinkFaults, OneDirectionAloneIsNotHeard) {
  const auto a = start(1);
  const auto b = start(2);
  const auto between = proxy::before(io, b->own->port());
  a->own->set_peers({b->as_peer(between->address())});
  b->own->set_peers({a->as_peer()});
  ASSERT_TRUE(gets_through(*a, *b));
  ASSERT_TRUE(reach([&] { return a->heard_of(2) > 0 && b->heard_of(1) > 0; }));
  between->swallows_answers = true;
  a->send(2, 1, "one way");
  b->heard.clear();
  ASSERT_TRUE(reach([&] { return b->heard_of(1) > 2; }));  // what was on its way has come
  a->heard.clear();
  ASSERT_TRUE(reach([&] { return b->heard_of(1) > 7; }));
  EXPECT_EQ(a->heard_of(2), 0);
  between->swallows_answers = false;
  between->cut();
  ASSERT_TRUE(reach([&] { return a->heard_of(2) > 0; }));
  ASSERT_TRUE(gets_through(*a, *b));
  EXPECT_EQ(b->names(), (std::vector<std::string>{"are you there", "one way", "are you there"}));
  between->close();
}

/// The median time of a byte there and back, on a plain connection.
double plain_round_trip_us(asio::io_context& io, int rounds) {
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  tcp::socket near(io);
  tcp::socket far(io);
  near.connect(acceptor.local_endpoint());
  acceptor.accept(far);
  near.set_option(tcp::no_delay(true));
  far.set_option(tcp::no_delay(true));
  std::array<char, 1> there{};
  std::array<char, 1> back{};
  std::vector<double> times;
  auto began = std::chrono::steady_clock::now();
  std::function<void()> echo = [&] {
    asio::async_read(far, asio::buffer(there), [&](const asio::error_code& error, std::size_t) {
      if (error) return;
      asio::async_write(far, asio::buffer(there), [](const asio::error_code&, std::size_t) {});
      echo();
    });
  };
  std::function<void()> ask = [&] {
    began = std::chrono::steady_clock::now();
    asio::async_write(near, asio::buffer(back), [](const asio::error_code&, std::size_t) {});
    asio::async_read(near, asio::buffer(back), [&](const asio::error_code&, std::size_t) {
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - began;
      times.push_back(took.count());
      if (static_cast<int>(times.size()) < rounds) return ask();
      near.close();
    });
  };
  echo();
  ask();
  io.restart();
  io.run();
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[static_cast<std::size_t>(rounds) / 2];
}

TEST_F(LinkFaults, RoundTripIsReported) {
  constexpr int rounds = 5'000;  // beyond a change of TLS's keys
  const double plain = plain_round_trip_us(io, rounds);
  std::unique_ptr<links> a;
  std::unique_ptr<links> b;
  std::vector<double> times;
  auto began = std::chrono::steady_clock::now();
  const auto ask = [&] {
    began = std::chrono::steady_clock::now();
    a->send({1, 2, 1, "x", request{mode::shared}});
  };
  const auto nothing = [](auto&&...) {};
  link_settings settings;
  settings.self = 1;
  settings.domain = "test";
  settings.address = "127.0.0.1:0";
  settings.options = options;
  a = std::make_unique<links>(
      io, settings,
      link_callbacks{[&](const message&) {
                       const std::chrono::duration<double, std::micro> took =
                           std::chrono::steady_clock::now() - began;
                       times.push_back(took.count());
                       if (times.size() < rounds) ask();
                     },
                     nothing, nothing});
  settings.self = 2;
  b = std::make_unique<links>(io, settings,
                              link_callbacks{[&](const message& what) {
                                               b->send({2, 1, 1, what.name, taken{}});
                                             },
                                             nothing, nothing});
  a->set_peers({{2, 0, b->address()}});
  b->set_peers({{1, 0, a->address()}});
  ask();
  ASSERT_TRUE(reach([&] { return times.size() >= rounds; }));
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  const double ours = times[rounds / 2];
  std::cout << "a message there and back: " << ours << " us, a byte over plain TCP: " << plain
            << " us, ratio " << ours / plain << '\n';
}

}  // namespace
}  // namespace lockflight::cluster::testing_links
