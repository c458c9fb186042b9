// Links between agents: peers and networks that do not work, and strangers.
#include <gtest/gtest.h>

#include <array>
#include <asio/buffer.hpp>
#include <asio/connect.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <random>
#include <span>

#include "cluster/link/channel.hpp"
#include "cluster/link/frames.hpp"
#include "link_room.hpp"

namespace lockflight::cluster::testing_links {
namespace {

using std::chrono::milliseconds;

/// What connects to an agent, sends some bytes, and notes whether the agent has hung up.
class stranger {
 public:
  stranger(asio::io_context& io, std::uint16_t port, std::string bytes)
      : socket_(io), bytes_(std::move(bytes)) {
    socket_.async_connect(tcp::endpoint(asio::ip::address_v4::loopback(), port),
                          [this](const asio::error_code& error) {
                            if (error) return end();
                            asio::async_write(socket_, asio::buffer(bytes_),
                                              [](const asio::error_code&, std::size_t) {});
                            read();
                          });
  }
  [[nodiscard]] bool has_ended() const { return has_ended_; }

 private:
  void end() { has_ended_ = true; }
  void read() {
    socket_.async_read_some(asio::buffer(answer_),
                            [this](const asio::error_code& error, std::size_t) {
                              if (error) return end();
                              read();
                            });
  }

  tcp::socket socket_;
  std::string bytes_;
  std::array<char, 256> answer_{};
  bool has_ended_ = false;
};

/// Knows the key, and sends what the test says after the handshake.
struct insider final : link::channel_user {
  insider(asio::io_context& io, const link_settings& of, std::uint16_t port, std::string says)
      : bytes(std::move(says)) {
    own = std::make_shared<link::channel>(
        tcp::socket(io), std::make_shared<link::tls>(link::shared_key{of.domain, of.key}),
        link::tls_side::dialer, *this);
    own->dial({tcp::endpoint(asio::ip::address_v4::loopback(), port)});
  }
  ~insider() { own->close(); }
  void opened() override { own->wake(); }
  void arrived(std::span<const std::uint8_t>) override { ++answers; }
  void arrived_all() override {}
  void fill(std::string& to) override { to += std::exchange(bytes, ""); }
  void broken(const link::breakage&) override { has_ended = true; }

  std::string bytes;
  std::shared_ptr<link::channel> own;
  int answers = 0;
  bool has_ended = false;
};

std::string noise(std::mt19937& random, std::size_t length) {
  std::string bytes(length, '\0');
  for (char& each : bytes) each = static_cast<char>(random());
  return bytes;
}

class LinkFaults : public Links {
 protected:
  /// Whether a gets a message to b.
  [[nodiscard]] bool gets_through(const station& a, const station& b) {
    const std::size_t before = b.received.size();
    a.send(b.settings.self, 1, "are you there");
    return reach([&] { return b.received.size() > before; });
  }
};

TEST_F(LinkFaults, AnotherKeyGetsNothingAndIsNamedOnce) {
  const auto a = start(1);
  link_settings other = a->settings;
  other.self = 2;
  other.key.fill(8);
  const auto b = start(other);
  a->own->set_peers({b->as_peer()});
  a->send(2, 1, "secret");
  ASSERT_TRUE(reach([&] {
    return a->troubles_with(2, "another pre-shared key") > 0 &&
           b->troubles_with(0, "another pre-shared key") > 0;
  }));
  run_for(milliseconds(500));  // it dials again and again
  EXPECT_EQ(a->troubles_with(2, "another pre-shared key"), 1);
  EXPECT_EQ(b->troubles.size(), 1u);
  EXPECT_TRUE(a->heard.empty() && b->received.empty());
}

TEST_F(LinkFaults, AnotherDomainGetsNothing) {
  const auto a = start(1);
  link_settings other = a->settings;
  other.self = 2;
  other.domain = "other";
  const auto b = start(other);
  a->own->set_peers({b->as_peer()});
  ASSERT_TRUE(reach([&] {
    return a->troubles_with(2, "another domain than 'test'") == 1 &&
           b->troubles_with(0, "is not for domain 'other'") == 1;
  }));
  EXPECT_TRUE(a->heard.empty());
}

TEST_F(LinkFaults, AnotherVersionIsNamed) {
  const auto a = start(1);
  options.version = 2;
  const auto b = start(2);
  a->own->set_peers({b->as_peer()});
  a->send(2, 1, "x");
  ASSERT_TRUE(reach([&] {
    return a->troubles_with(2, "speaks version 2 of the protocol, this agent speaks 1") == 1 &&
           b->troubles_with(1, "speaks version 1 of the protocol, this agent speaks 2") == 1;
  }));
  EXPECT_TRUE(a->heard.empty() && b->received.empty());
}

TEST_F(LinkFaults, StrangersThatSendNoiseAreDropped) {
  const auto a = start(1);
  const auto b = start(2);
  a->own->set_peers({b->as_peer()});
  std::mt19937 random(3);
  std::vector<std::unique_ptr<stranger>> all;
  for (const std::size_t length : {1u, 5u, 100u, 5'000u, 100'000u}) {
    std::string as_tls = "\x16\x03\x01\x10" + noise(random, length);
    all.push_back(std::make_unique<stranger>(io, b->own->port(), noise(random, length + 10)));
    all.push_back(std::make_unique<stranger>(io, b->own->port(), std::move(as_tls)));
  }
  EXPECT_TRUE(gets_through(*a, *b));
  b->own->close();  // those that wait for the rest of a record
  ASSERT_TRUE(reach([&] {
    return std::all_of(all.begin(), all.end(), [](const auto& s) { return s->has_ended(); });
  }));
  EXPECT_GT(b->troubles_with(0, "ended in its handshake"), 0);
}

TEST_F(LinkFaults, NoiseFromOneThatHasTheKeyIsDropped) {
  const auto a = start(1);
  const auto b = start(2);
  a->own->set_peers({b->as_peer()});
  std::mt19937 random(4);
  link::hello right;
  right.from = 3;
  right.from_agent = 1;
  right.to = 2;
  right.to_agent = 1;
  right.stream = 1;
  right.domain = "test";
  std::string greeting;
  link::append_hello(greeting, right);
  std::vector<std::unique_ptr<insider>> all;
  const auto add = [&](std::string bytes) {
    all.push_back(std::make_unique<insider>(io, b->settings, b->own->port(), std::move(bytes)));
    ASSERT_TRUE(reach([&] { return all.back()->has_ended; }));
  };
  add(noise(random, 2'000));
  add(std::string(8, '\0'));                           // empty frames
  add(std::string("\x00\x00\x08\x00", 4) + "x");       // more than a hello has
  add(greeting + greeting);                            // a second hello
  add(greeting + std::string("\x7f\xff\xff\xff", 4));  // 2 GiB
  add(greeting + std::string("\x00\x00\x00\x01\x02", 5));
  link::append_number(greeting, link::frame_kind::ping, 1);
  add(greeting + link::data_frame(2, {3, 2, 1, "", claims_done{}}));  // the first is missing
  add(greeting + link::data_frame(1, {4, 2, 1, "", claims_done{}}));  // in another's name
  add(greeting + link::data_frame(1, {3, 5, 1, "", claims_done{}}));  // to another
  for (int i = 0; i < 20; ++i) add(greeting + noise(random, 100));
  EXPECT_TRUE(gets_through(*a, *b));
  EXPECT_EQ(b->received.size(), 1u);
}

TEST_F(LinkFaults, StrangersThatSayNothingAreDroppedAndKeepNobodyOut) {
  options.handshakes_most = 4;
  options.handshake_limit = milliseconds(2'000);
  const auto b = start(2);
  const auto a = start(1);
  std::vector<std::unique_ptr<stranger>> all;
  const auto ended = [&] {
    return std::count_if(all.begin(), all.end(), [](const auto& s) { return s->has_ended(); });
  };
  for (int i = 0; i < 20; ++i) all.push_back(std::make_unique<stranger>(io, b->own->port(), ""));
  ASSERT_TRUE(reach([&] { return ended() >= 16; }));
  a->own->set_peers({b->as_peer()});
  EXPECT_TRUE(gets_through(*a, *b));
  ASSERT_TRUE(reach([&] { return ended() == 20; }));
  EXPECT_TRUE(gets_through(*a, *b));
}

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

TEST_F(LinkFaults, WhoseQueueOverflowsIsNotHeardUntilTheNextEpoch) {
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
  ASSERT_TRUE(reach([&] { return b->received.size() == 2; }));
  run_for(milliseconds(100));  // what was on its way
  a->heard.clear();
  b->heard.clear();
  ASSERT_TRUE(reach([&] { return b->heard_of(1) > 5; }));
  EXPECT_EQ(a->heard_of(2), 0);
  between->swallows_answers = false;
  between->cut();
  ASSERT_TRUE(reach([&] { return a->heard_of(2) > 0; }));
  ASSERT_TRUE(gets_through(*a, *b));
  EXPECT_EQ(b->received.size(), 3u);
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
