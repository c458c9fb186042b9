// A domain's keys and values as text: what is written is read again, and what is not of the format
// is refused with the key's name.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "lab/cluster/random.hpp"
#include "names/agent/etcd/base64.hpp"
#include "names/agent/etcd/text.hpp"
#include "tests/names/agent/etcd/etcd_server.hpp"

namespace lockflight::cluster {
namespace {

const domain_keys text_names("d");
const member_place full_place{"node7:4711", "node7"};

etcd_view view_of(const std::string& rest, const std::string& text) {
  etcd_view view;
  add({text_names.prefix() + rest, text, 3, 5}, text_names, view);
  return view;
}

/// The message of the error, or nothing.
std::string refusal_of(const std::string& rest, const std::string& text) {
  try {
    (void)view_of(rest, text);
    return "";
  } catch (const bad_entry& e) {
    return e.what();
  }
}

TEST(EtcdText, NamesKeys) {
  EXPECT_EQ(text_names.text_of(key{key_kind::epoch}), "lockflight/d/epoch");
  EXPECT_EQ(text_names.text_of(key{key_kind::member, 0xab}),
            "lockflight/d/member/00000000000000ab");
  EXPECT_EQ(text_names.text_of(key{key_kind::beat, ~0ull}), "lockflight/d/beat/ffffffffffffffff");
  EXPECT_EQ(text_names.text_of(key{key_kind::evicted, 1}), "lockflight/d/evicted/0000000000000001");
  EXPECT_EQ(text_names.end(), "lockflight/d/note/");
  EXPECT_GE(text_names.note("ttl"), text_names.end());
  EXPECT_GE(text_names.secret(), text_names.end());
  EXPECT_LE(text_names.of_names().first, text_names.note("done/a"));
  EXPECT_LT(text_names.note("value/\xff"), text_names.of_names().end);
  EXPECT_THROW(domain_keys(""), std::invalid_argument);
  EXPECT_THROW(domain_keys("a/b"), std::invalid_argument);
  EXPECT_THROW(domain_keys(std::string(65, 'a')), std::invalid_argument);
}

TEST(EtcdText, ReadsWhatItWrites) {
  epoch_value epoch;
  epoch.number = last_epoch;
  epoch.members = {{{1, 2}, 3}, {{0xffffffffffffffff, 5}, 6}};
  epoch.past = {{7, {{1, 1}, {9, 9}}, true, {{9, 9}}}, {8, {}, false, {}}};
  epoch.settled = true;
  const etcd_view with_epoch = view_of("epoch", text_of(epoch));
  EXPECT_EQ(with_epoch.keys.epoch->what, epoch);
  EXPECT_EQ(with_epoch.keys.epoch->created, 3);
  EXPECT_EQ(with_epoch.keys.epoch->changed, 5);

  const etcd_view with_member =
      view_of("member/000000000000000a", text_of(member_value{7, 8}, &full_place));
  EXPECT_EQ(with_member.keys.find(10)->member->what, (member_value{7, 8}));
  EXPECT_EQ(with_member.addresses.at(10), "node7:4711");
  EXPECT_EQ(with_member.hosts.at(10), "node7");
  EXPECT_TRUE(view_of("member/000000000000000a", text_of(member_value{7, 8})).addresses.empty());

  const beat_value beat{3, {1, 2}};
  EXPECT_EQ(view_of("beat/000000000000000a", text_of(beat)).keys.find(10)->beat->what, beat);
  EXPECT_TRUE(view_of("evicted/000000000000000a", text_of(evicted_value{})).keys.find(10)->evicted);

  domain_secret secret{};
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::uint8_t>(i * 37);
  EXPECT_EQ(read_secret("k", text_of(secret)), secret);
}

TEST(EtcdText, IgnoresWhatALaterVersionAdds) {
  EXPECT_EQ(refusal_of("something/else", "\xff"), "");
  EXPECT_EQ(refusal_of("secret", "\xff"), "");
  EXPECT_EQ(refusal_of("epochs", "\xff"), "");
  EXPECT_EQ(refusal_of("beat/000000000000000a",
                       R"({"version":1,"begun":0,"missing":[],"mood":{"a":[1]}})"),
            "");
}

TEST(EtcdText, RefusesAnotherVersion) {
  const std::string said = refusal_of("evicted/000000000000000a", R"({"version":2})");
  EXPECT_SAYS(said, "lockflight/d/evicted/000000000000000a");
  EXPECT_SAYS(said, "later lockflight");
}

TEST(EtcdText, NamesTheKeyTheValueAndWhatIsExpected) {
  const std::string said =
      refusal_of("epoch", std::string("a\"\n\x01\xff") + std::string(500, 'b'));
  EXPECT_SAYS(said, "lockflight/d/epoch");
  EXPECT_SAYS(said, R"('a"\x0a\x01\xff)");
  EXPECT_SAYS(said, "a JSON object");
  EXPECT_LT(said.size(), 400u);
  EXPECT_EQ(said, visible(said));
}

TEST(EtcdText, RefusesKeysOfNoMember) {
  for (const char* const rest : {"member/", "member/1", "beat/000000000000000A",
                                 "evicted/0000000000000000", "member/000000000000000a/x"})
    EXPECT_SAYS(refusal_of(rest, text_of(evicted_value{})), "16 hexadecimal digits");
}

TEST(EtcdText, RefusesHostileValues) {
  const std::string member = "member/000000000000000a";
  const std::string beat = "beat/000000000000000a";
  const std::pair<std::string, std::string> hostile[] = {
      {"epoch", ""},
      {"epoch", "[]"},
      {"epoch", "{}"},
      {"epoch", std::string(100'000, '[')},
      {"epoch", R"({"version":1,"number":0,"settled":true,"members":[],"past":[]})"},
      {"epoch", R"({"version":1,"number":1048576,"settled":true,"members":[],"past":[]})"},
      {"epoch", R"({"version":1,"number":-1,"settled":true,"members":[],"past":[]})"},
      {"epoch", R"({"version":1,"number":1.0,"settled":true,"members":[],"past":[]})"},
      {"epoch", R"({"version":1,"number":"1","settled":true,"members":[],"past":[]})"},
      {"epoch", R"({"version":1,"number":1,"settled":1,"members":[],"past":[]})"},
      {"epoch", R"({"version":1,"number":1,"settled":true,"members":{},"past":[]})"},
      {"epoch", R"({"version":1,"number":1,"settled":true,"members":[7],"past":[]})"},
      {"epoch", R"({"version":1,"number":1,"settled":true,"members":[],"past":[{}]})"},
      {"epoch", R"({"version":1,"number":1,"settled":true,"past":[],"members":[)"
                R"({"id":"0000000000000002","incarnation":1,"agent":1},)"
                R"({"id":"0000000000000002","incarnation":2,"agent":1}]})"},
      {member, R"({"version":1,"incarnation":1})"},
      {member, R"({"version":1,"incarnation":1,"agent":1,"address":"a:1"})"},
      {member, R"({"version":1,"incarnation":1,"agent":1,"address":"a","host":"h"})"},
      {member, R"({"version":1,"incarnation":1,"agent":1,"address":"a:0","host":"h"})"},
      {member, R"({"version":1,"incarnation":1,"agent":1,"address":"a:65536","host":"h"})"},
      {member, R"({"version":1,"incarnation":1,"agent":1,"address":"a:1","host":"\u001b[2J"})"},
      {member, R"({"version":1,"incarnation":1,"agent":1,"address":7,"host":"h"})"},
      {beat, R"({"version":1,"begun":1,"missing":["1"]})"},
      {beat, R"({"version":1,"begun":1,"missing":[1]})"},
      {beat, R"({"version":1,"begun":1,"missing":null})"},
      {beat, R"({"version":null,"begun":1,"missing":[]})"},
      {"evicted/000000000000000a", "null"},
  };
  for (const auto& [rest, text] : hostile)
    EXPECT_SAYS(refusal_of(rest, text), text_names.prefix() + rest) << text;
}

TEST(EtcdText, DoesNotShowASecret) {
  const std::string text = R"({"version":1,"key":"abcd"})";
  try {
    (void)read_secret("lockflight/d/secret", text);
    FAIL();
  } catch (const bad_entry& e) {
    EXPECT_SAYS(e.what(), "lockflight/d/secret");
    EXPECT_SAYS(e.what(), "64 hexadecimal digits");
    EXPECT_EQ(std::string(e.what()).find("abcd"), std::string::npos);
  }
}

/// Random bytes, and good values with some bytes changed: each is read or refused.
TEST(EtcdText, ReadsOrRefusesRandomBytes) {
  epoch_value epoch;
  epoch.number = 3;
  epoch.members = {{{1, 2}, 3}, {{4, 5}, 6}};
  epoch.past = {{2, {{1, 1}}, true, {{1, 1}}}};
  const std::pair<std::string, std::string> good[] = {
      {"epoch", text_of(epoch)},
      {"member/000000000000000a", text_of(member_value{1, 2}, &full_place)},
      {"beat/000000000000000a", text_of(beat_value{1, {1, 2}})},
      {"evicted/000000000000000a", text_of(evicted_value{})},
  };
  sim::random_numbers random(1);
  int refused = 0;
  constexpr int many = 20'000;
  for (int i = 0; i < many; ++i) {
    auto [rest, text] = good[random.below(4)];
    if (random.one_in(4)) text.resize(static_cast<std::size_t>(random.below(40)));
    const std::int64_t changes = random.between(1, 4);
    for (std::int64_t change = 0; change < changes && !text.empty(); ++change) {
      const auto at =
          static_cast<std::size_t>(random.below(static_cast<std::int64_t>(text.size())));
      if (random.one_in(3))
        text.erase(at, 1);
      else
        text[at] = static_cast<char>(random.next());
    }
    if (random.one_in(8)) rest[rest.size() - 1] = static_cast<char>(random.next());
    if (!refusal_of(rest, text).empty()) ++refused;
  }
  EXPECT_GT(refused, many / 2);
}

TEST(EtcdText, Base64) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  EXPECT_EQ(to_base64("\xff\xfe\xfd"), "//79");
  for (const char* const bad : {"Z", "Zg", "Zg=", "Zh==", "Z===", "====", "Zm9v\n", "Zm 9"})
    EXPECT_FALSE(from_base64(bad)) << bad;
  sim::random_numbers random(2);
  for (int i = 0; i < 2'000; ++i) {
    std::string bytes(static_cast<std::size_t>(random.below(20)), '\0');
    for (char& each : bytes) each = static_cast<char>(random.next());
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
}

}  // namespace
}  // namespace lockflight::cluster
