// The store of an agent, with a real etcd.
#include "names/agent/etcd/store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <asio/use_future.hpp>
#include <chrono>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "tests/names/agent/etcd/etcd_server.hpp"

namespace lockflight::cluster {
namespace {

constexpr member_id self = 0xa;
const member_place place{"127.0.0.1:4711", "here"};
constexpr key my_member{key_kind::member, self};
constexpr key my_beat{key_kind::beat, self};

/// What a store has called.
class heard {
 public:
  [[nodiscard]] etcd_events events() {
    return {.answered =
                [this](std::uint64_t number, const answer& what,
                       const std::shared_ptr<const etcd_view>& view) {
                  EXPECT_EQ(what.seen.get(), &view->keys);
                  answers_.push_back({number, {what, view}});
                },
            .hint = [this] { ++hints_; },
            .trouble = [this](const std::string& what) { troubles_.push_back(what); },
            .recovered = [this] { ++recoveries_; }};
  }
  [[nodiscard]] std::size_t answers() const { return answers_.size(); }
  [[nodiscard]] std::pair<std::uint64_t, etcd_answer> last() const { return answers_.back(); }
  [[nodiscard]] std::vector<std::uint64_t> numbers() const {
    std::vector<std::uint64_t> all;
    for (const auto& each : answers_) all.push_back(each.first);
    return all;
  }
  [[nodiscard]] int hints() const { return hints_; }
  [[nodiscard]] std::vector<std::string> troubles() const { return troubles_; }
  [[nodiscard]] int recoveries() const { return recoveries_; }

 private:
  std::vector<std::pair<std::uint64_t, etcd_answer>> answers_;
  int hints_ = 0;
  std::vector<std::string> troubles_;
  int recoveries_ = 0;
};

class EtcdStore : public test::WithEtcd {
 protected:
  [[nodiscard]] static etcd_store_options options() {
    return {server().options(), domain(), self, place};
  }
  /// Submits it, and waits for its answer.
  static etcd_answer carry_out(etcd_store& store, heard& of, transaction what) {
    const std::size_t before = of.answers();
    store.submit({before + 1, std::move(what)});
    EXPECT_TRUE(test::comes_true([&] { return of.answers() > before; }));
    return of.last().second;
  }
  [[nodiscard]] static transaction registers() {
    return {{{my_member, 0}}, {{my_member, member_value{1, 2}}, {my_beat, beat_value{3, {4}}}}, {}};
  }
};

TEST_F(EtcdStore, AnswersATransactionWithAllKeys) {
  heard of;
  etcd_store store(test::loop(), options(), of.events());
  const etcd_answer made = carry_out(store, of, registers());
  EXPECT_TRUE(made.what.succeeded);
  const member_keys* const mine = made.what.seen->find(self);
  ASSERT_NE(mine, nullptr);
  EXPECT_EQ(mine->member->what, (member_value{1, 2}));
  EXPECT_EQ(mine->beat->what, (beat_value{3, {4}}));
  EXPECT_EQ(mine->member->changed, made.what.seen->at);
  EXPECT_EQ(made.view->addresses.at(self), place.address);
  EXPECT_EQ(made.view->hosts.at(self), place.host);
  EXPECT_EQ(made.view->cluster, test::now(store.others().ping()).cluster);

  const etcd_answer refused = carry_out(store, of, registers());
  EXPECT_FALSE(refused.what.succeeded);
  EXPECT_EQ(refused.what.seen->at, made.what.seen->at);
  EXPECT_TRUE(refused.what.seen->find(self)->member);

  const etcd_answer erased = carry_out(store, of, {{}, {}, {my_member, my_beat}});
  EXPECT_TRUE(erased.what.succeeded);
  EXPECT_TRUE(erased.what.seen->members.empty());
  EXPECT_TRUE(erased.view->addresses.empty());
  EXPECT_EQ(of.troubles().size(), 0u);
}

TEST_F(EtcdStore, KeepsTheOrderAndDropsTheOldest) {
  heard of;
  etcd_store store(test::loop(), options(), of.events());
  for (std::uint64_t number = 1; number <= 5; ++number) store.submit({number, {}});
  ASSERT_TRUE(test::comes_true([&] { return of.answers() == 5; }));
  EXPECT_EQ(of.numbers(), (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  server().halt();
  for (std::uint64_t number = 6; number <= 40; ++number) store.submit({number, {}});
  server().go_on();
  ASSERT_TRUE(test::comes_true([&] { return of.last().first == 40; }));
  const std::vector<std::uint64_t> all = of.numbers();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_LT(all.size(), 5u + 35u);
}

TEST_F(EtcdStore, HintsAtAChangeByAnother) {
  heard of;
  etcd_store store(test::loop(), options(), of.events());
  store.begin_watch();
  ASSERT_TRUE(test::comes_true([&] { return of.hints() == 1; }));  // it watches
  etcd_client other(test::loop(), server().options(), domain());
  (void)test::now(other.carry_out(registers(), self, place));
  ASSERT_TRUE(test::comes_true([&] { return of.hints() == 2; }));
  // The same value again is no change, and neither is another domain's.
  (void)test::now(other.carry_out({{}, {{my_beat, beat_value{3, {4}}}}, {}}, self, place));
  etcd_client elsewhere(test::loop(), server().options(), domain() + "2");
  (void)test::now(elsewhere.carry_out(registers(), self, place));
  (void)test::now(other.carry_out({{}, {{my_beat, beat_value{4, {4}}}}, {}}, self, place));
  ASSERT_TRUE(test::comes_true([&] { return of.hints() >= 3; }));
  (void)test::now(other.carry_out({{}, {}, {my_beat}}, self, place));
  ASSERT_TRUE(test::comes_true([&] { return of.hints() >= 4; }));
  test::run_for(std::chrono::milliseconds(50));  // for one that must not come
  EXPECT_EQ(of.hints(), 4);
}

TEST_F(EtcdStore, SaysOnceThatEtcdIsAwayAndThatItIsBack) {
  heard of;
  etcd_store_options away = options();
  away.etcd.limit = std::chrono::milliseconds(100);
  etcd_store store(test::loop(), away, of.events());
  server().halt();
  store.submit({1, {}});
  store.submit({2, {}});
  store.submit({3, registers()});
  ASSERT_TRUE(test::comes_true([&] { return of.troubles().size() == 1; }));
  EXPECT_SAYS(of.troubles()[0], server().url());
  test::run_for(std::chrono::milliseconds(400));
  server().go_on();
  while (of.recoveries() == 0) {
    store.submit({4, {}});
    test::run_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(of.recoveries(), 1);
  EXPECT_EQ(of.troubles().size(), 1u);
  EXPECT_EQ(of.last().first, 4u);
}

TEST_F(EtcdStore, NamesTheKeyThatIsGarbage) {
  heard of;
  etcd_store store(test::loop(), options(), of.events());
  server().put(key_text("beat/000000000000000b"), "oops");
  store.submit({1, {}});
  ASSERT_TRUE(test::comes_true([&] { return !of.troubles().empty(); }));
  EXPECT_SAYS(of.troubles()[0], key_text("beat/000000000000000b"));
  EXPECT_SAYS(of.troubles()[0], "oops");
  EXPECT_EQ(of.answers(), 0u);
  EXPECT_THROW((void)test::now(store.others().read_view()), bad_entry);
  server().put(key_text("beat/000000000000000b"), R"({"version":1,"begun":0,"missing":[]})");
  (void)carry_out(store, of, {});
  EXPECT_EQ(of.recoveries(), 1);
}

TEST_F(EtcdStore, HasOneSecret) {
  constexpr std::size_t many = 4;
  std::vector<etcd_client> clients;
  std::vector<std::future<domain_secret>> asked;
  for (std::size_t i = 0; i < many; ++i)
    clients.emplace_back(test::loop(), server().options(), domain());
  for (etcd_client& each : clients)
    asked.push_back(asio::co_spawn(test::loop(), each.secret(), asio::use_future));
  const auto is_there = [](const auto& each) {
    return each.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  };
  ASSERT_TRUE(test::comes_true([&] { return std::all_of(asked.begin(), asked.end(), is_there); }));
  std::vector<domain_secret> secrets;
  for (std::future<domain_secret>& each : asked) secrets.push_back(each.get());
  for (const domain_secret& each : secrets) EXPECT_EQ(each, secrets[0]);
  EXPECT_NE(secrets[0], domain_secret{});
  etcd_client elsewhere(test::loop(), server().options(), domain() + "2");
  EXPECT_NE(test::now(elsewhere.secret()), secrets[0]);
  server().put(key_text("secret"), R"({"version":1,"key":"00"})");
  etcd_client another(test::loop(), server().options(), domain());
  EXPECT_THROW((void)test::now(another.secret()), bad_entry);
}

TEST_F(EtcdStore, KeepsNotes) {
  heard of;
  etcd_store store(test::loop(), options(), of.events());
  const auto get = [&](const char* note) { return test::now(store.others().get(note)); };
  const auto put_if = [&](revision changed, const std::string& text) {
    return test::now(store.others().put_if("n", changed, text));
  };
  EXPECT_FALSE(get("n"));
  const std::string text("any \0 bytes\xff", 12);
  const std::optional<revision> written = put_if(0, text);
  ASSERT_TRUE(written);
  EXPECT_EQ(get("n")->text, text);
  EXPECT_EQ(get("n")->changed, *written);
  EXPECT_FALSE(put_if(0, "another"));
  EXPECT_FALSE(put_if(*written + 1, "another"));
  EXPECT_TRUE(put_if(*written, "another"));
  EXPECT_EQ(get("n")->text, "another");
  EXPECT_THROW((void)get(""), std::invalid_argument);
  EXPECT_TRUE(carry_out(store, of, {}).what.seen->members.empty());
}

// A watch that goes on where it was names each key that has changed, once, and gives no hint when
// it begins again.
TEST_F(EtcdStore, AWatchOfNotesNamesEachChange) {
  std::vector<std::string> keys;
  int unknown = 0;
  const etcd_watch watch(
      test::loop(), server().options(), domain_keys(domain()).of_names(),
      [&](const etcd_changes& what) {
        keys.insert(keys.end(), what.keys.begin(), what.keys.end());
        unknown += what.are_unknown ? 1 : 0;
      },
      etcd_watch::again::from_where_it_was);
  ASSERT_TRUE(test::comes_true([&] { return unknown == 1; }));  // it watches
  etcd_client other(test::loop(), server().options(), domain());
  const std::string odd("value/\xff\n");  // a name is any bytes
  std::vector<std::string> wanted;
  for (const std::string& note : {std::string("done/a"), odd, std::string("value/a")}) {
    EXPECT_TRUE(test::now(other.put_if(note, 0, "told")));
    wanted.push_back(domain_keys(domain()).note(note));
  }
  EXPECT_TRUE(test::now(other.put_if("x", 0, "of no name")));
  ASSERT_TRUE(test::comes_true([&] { return keys.size() >= wanted.size(); }));
  test::run_for(std::chrono::milliseconds(50));  // for a change that must not come
  EXPECT_EQ(keys, wanted);
  EXPECT_EQ(unknown, 1);
}

TEST_F(EtcdStore, IsRefusedWithWrongOptions) {
  for (const char* const url : {"", "127.0.0.1:1", "ftp://a:1", "http://", "http://a:1/v3",
                                "http://u:p@a:1", "http://a:1?x"}) {
    etcd_store_options wrong = options();
    wrong.etcd.endpoints = {url};
    EXPECT_THROW(etcd_store(test::loop(), wrong, heard().events()), std::invalid_argument) << url;
  }
  etcd_store_options wrong = options();
  wrong.etcd.password = "\xff";
  EXPECT_THROW(etcd_store(test::loop(), wrong, heard().events()), std::invalid_argument);
  wrong = options();
  wrong.place.address = "here";
  EXPECT_THROW(etcd_store(test::loop(), wrong, heard().events()), std::invalid_argument);
  wrong = options();
  wrong.self = 0;
  EXPECT_THROW(etcd_store(test::loop(), wrong, heard().events()), std::invalid_argument);
}

}  // namespace
}  // namespace lockflight::cluster
