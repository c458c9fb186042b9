// Links between agents: what has another key, domain or version, and strangers that send noise.
#include <gtest/gtest.h>

#include <array>
#include <asio/buffer.hpp>
#include <asio/write.hpp>
#include <random>
#include <span>

#include "link_room.hpp"
#include "names/agent/link/channel.hpp"
#include "names/agent/link/frames.hpp"

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

using LinkStrangers = Links;

TEST_F(LinkStrangers, AnotherKeyGetsNothingAndIsNamedOnce) {
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
  EXPECT_EQ(b->troubles_with(0, "another pre-shared key"), 1);
  EXPECT_TRUE(a->heard.empty() && b->received.empty());
}

TEST_F(LinkStrangers, AnotherDomainGetsNothing) {
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

TEST_F(LinkStrangers, AnotherVersionIsNamed) {
  const auto a = start(1);
  options.version = 3;
  const auto b = start(2);
  a->own->set_peers({b->as_peer()});
  a->send(2, 1, "x");
  ASSERT_TRUE(reach([&] {
    return a->troubles_with(2, "speaks version 3 of the protocol, this agent speaks 2") == 1 &&
           b->troubles_with(1, "speaks version 2 of the protocol, this agent speaks 3") == 1;
  }));
  EXPECT_TRUE(a->heard.empty() && b->received.empty());
}

TEST_F(LinkStrangers, StrangersThatSendNoiseAreDropped) {
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
  ASSERT_TRUE(reach([&] { return b->troubles_with(0, "ended in its handshake") > 0; }));
  b->own->close();  // those that wait for the rest of a record
  ASSERT_TRUE(reach([&] {
    return std::all_of(all.begin(), all.end(), [](const auto& s) { return s->has_ended(); });
  }));
}

TEST_F(LinkStrangers, NoiseFromOneThatHasTheKeyIsDropped) {
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

TEST_F(LinkStrangers, StrangersThatSayNothingAreDroppedAndKeepNobodyOut) {
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

}  // namespace
}  // namespace lockflight::cluster::testing_links
