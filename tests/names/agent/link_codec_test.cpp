// Messages as bytes: each comes back as it was, and what is no message gives none.
#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "names/agent/link/codec.hpp"
#include "names/agent/link/frames.hpp"

namespace lockflight::cluster {
namespace {

constexpr std::uint64_t greatest = UINT64_MAX;
constexpr token some_token{last_epoch, last_counter};

bool same(const request& a, const request& b) { return a.wanted == b.wanted; }
bool same(const grant& a, const grant& b) {
  return a.granted == b.granted && a.last == b.last && a.died == b.died;
}
bool same(const revoke& a, const revoke& b) { return a.wanted == b.wanted; }
bool same(const give_back& a, const give_back& b) {
  return a.kept == b.kept && a.last == b.last && a.died == b.died;
}
bool same(const taken&, const taken&) { return true; }
bool same(const claim& a, const claim& b) {
  return a.owned == b.owned && a.last == b.last && a.died == b.died;
}
bool same(const former_record& a, const former_record& b) { return a.what == b.what; }
bool same(const claims_done&, const claims_done&) { return true; }
bool same(const forget&, const forget&) { return true; }
bool same(const forgotten&, const forgotten&) { return true; }
bool same(const witness_request& a, const witness_request& b) { return a.is_set == b.is_set; }
bool same(const witness_ack&, const witness_ack&) { return true; }
bool same(const witness_report& a, const witness_report& b) { return a.epoch == b.epoch; }

bool same(const message& a, const message& b) {
  if (a.from != b.from || a.to != b.to || a.epoch != b.epoch || a.name != b.name ||
      a.what.index() != b.what.index())
    return false;
  return std::visit(
      [&](const auto& body) { return same(body, std::get<std::decay_t<decltype(body)>>(b.what)); },
      a.what);
}

std::vector<message> samples() {
  std::vector<message> all;
  const auto add = [&](body what) {
    all.push_back({1, 2, 3, "name", what});
    all.push_back({greatest, greatest - 1, last_epoch, std::string(3000, 'x'), what});
    all.push_back({23, 24, 0, std::string("\0\xff\x80", 3), what});
  };
  for (const mode each : {mode::none, mode::shared, mode::exclusive}) {
    add(request{each});
    add(grant{each, some_token, true});
    add(grant{each, {}, false});
    add(revoke{each});
    add(give_back{each, some_token, false});
    add(claim{each, {1, 300}, true});
  }
  add(taken{});
  add(former_record{{7, {6, 5}, true, identity{greatest, UINT32_MAX}}});
  add(former_record{{7, some_token, false, std::nullopt}});
  add(claims_done{});
  add(forget{});
  add(forgotten{});
  add(witness_request{true});
  add(witness_request{false});
  add(witness_ack{});
  add(witness_report{last_epoch});
  return all;
}

std::string encoded(const message& what) {
  std::string bytes;
  encode(what, bytes);
  return bytes;
}

std::optional<message> decoded(const std::string& bytes) {
  // Exactly as long as it is, so that AddressSanitizer sees a read beyond it.
  const std::vector<std::uint8_t> copy(bytes.begin(), bytes.end());
  return decode(copy);
}

TEST(LinkCodec, EveryMessageComesBackAsItWas) {
  std::set<std::size_t> kinds;
  for (const message& each : samples()) {
    const auto back = decoded(encoded(each));
    ASSERT_TRUE(back);
    EXPECT_TRUE(same(each, *back)) << "kind " << each.what.index();
    kinds.insert(each.what.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<body>);
}

TEST(LinkCodec, AMessageIsSmall) {
  EXPECT_LE(encoded({greatest, greatest, 100, "name", request{mode::shared}}).size(), 32u);
}

TEST(LinkCodec, APartOfAMessageIsNone) {
  for (const message& each : samples()) {
    if (each.name.size() > 100) continue;
    const std::string bytes = encoded(each);
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decoded(bytes.substr(0, length)));
    EXPECT_FALSE(decoded(bytes + '\0'));
  }
}

TEST(LinkCodec, NumbersOutOfRangeAreNoMessage) {
  // [request, from 1, to 2, epoch 3, "n", mode]
  const std::string right("\x86\x00\x01\x02\x03\x61n\x01", 8);
  ASSERT_TRUE(decoded(right));
  const auto with = [&](std::size_t at, const std::string& item) {
    return right.substr(0, at) + item + right.substr(at + 1);
  };
  EXPECT_FALSE(decoded(with(7, "\x03")));                                  // no such mode
  EXPECT_FALSE(decoded(with(1, "\x08")));                                  // no such kind
  EXPECT_FALSE(decoded(with(4, std::string("\x1b\0\0\0\1\0\0\0\0", 9))));  // epoch of 33 bits
  EXPECT_FALSE(decoded(with(4, std::string("\x1a\0\x10\0\0", 5))));        // after the last epoch
  EXPECT_FALSE(decoded(with(4, "\x20")));                                  // -1
  EXPECT_FALSE(decoded(with(4, std::string("\xf9\0\0", 3))));              // a float
  EXPECT_FALSE(decoded(with(4, "\xf6")));                                  // null
  EXPECT_FALSE(decoded(with(4, "\xf5")));                                  // true
  EXPECT_FALSE(decoded(with(4, "\x80")));                                  // an array
  EXPECT_FALSE(decoded(with(5, std::string("\x7b\xff\xff\xff\xff\xff\xff\xff\xff", 9))));
  EXPECT_FALSE(decoded(with(0, std::string("\x9a\xff\xff\xff\xff", 5))));
}

TEST(LinkCodec, NestedHeadsDoNotUseUpTheStack) {
  for (const char head : {'\x7f', '\x5f', '\x81', '\x9f', '\xa1', '\xbf', '\xc1', '\x86'}) {
    EXPECT_FALSE(decoded(std::string(link::longest_payload, head)));
    EXPECT_FALSE(decoded("\x86" + std::string(link::longest_payload, head)));
  }
}

TEST(LinkCodec, RandomBytesDoNoHarm) {
  std::mt19937 random(1);
  const auto any = [&](std::size_t below) { return static_cast<std::size_t>(random()) % below; };
  const std::vector<message> all = samples();
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = encoded(all[any(all.size())]);
    bytes.resize(std::min<std::size_t>(bytes.size(), 40));
    for (std::size_t flips = 1 + any(4); flips > 0; --flips)
      bytes[any(bytes.size())] = static_cast<char>(random());
    if (const auto back = decoded(bytes)) {
      EXPECT_TRUE(decoded(encoded(*back)));
    }
    std::string noise(any(60), '\0');
    for (char& each : noise) each = static_cast<char>(random());
    (void)decoded(noise);
    const std::vector<std::uint8_t> payload(noise.begin(), noise.end());
    (void)link::read_hello(payload, link::protocol_version);
    if (payload.empty()) continue;
    (void)link::read_number(payload);
    (void)link::read_data(payload);
  }
}

TEST(LinkCodec, AHelloComesBackAsItWas) {
  const link::hello what{.version = link::protocol_version,
                         .from = greatest,
                         .from_agent = 2,
                         .to = 3,
                         .to_agent = 4,
                         .what = link::verdict::outdated,
                         .stream = 5,
                         .received = 6,
                         .domain = "domain"};
  std::string frame;
  link::append_hello(frame, what);
  const std::vector<std::uint8_t> bytes(frame.begin(), frame.end());
  const std::span<const std::uint8_t> all(bytes);
  EXPECT_EQ(link::payload_length(all.first<link::length_size>()), bytes.size() - link::length_size);
  const auto back = link::read_hello(all.subspan(link::length_size), link::protocol_version);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->from, what.from);
  EXPECT_EQ(back->from_agent, what.from_agent);
  EXPECT_EQ(back->to, what.to);
  EXPECT_EQ(back->to_agent, what.to_agent);
  EXPECT_EQ(back->what, what.what);
  EXPECT_EQ(back->stream, what.stream);
  EXPECT_EQ(back->received, what.received);
  EXPECT_EQ(back->domain, what.domain);
  const auto other = link::read_hello(all.subspan(link::length_size), link::protocol_version + 1);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->version, link::protocol_version);
  EXPECT_EQ(other->from, what.from);
  EXPECT_TRUE(other->domain.empty());
}

TEST(LinkCodec, AMessageThatIsTooLongForAFrameIsRefused) {
  const message what{1, 2, 3, std::string(link::longest_payload, 'x'), request{}};
  EXPECT_THROW((void)link::data_frame(1, what), std::length_error);
}

}  // namespace
}  // namespace lockflight::cluster
