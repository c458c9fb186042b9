// An etcd of three members, of which some die or lose each other.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "names/agent/etcd/client.hpp"
#include "names/agent/etcd/store.hpp"
#include "tests/names/agent/etcd/etcd_server.hpp"

namespace lockflight::cluster {
namespace {

constexpr key beat_of_one{key_kind::beat, 1};
const member_place place_of_one{"127.0.0.1:4711", "here"};

transaction beats(epoch_number begun) { return {{}, {{beat_of_one, beat_value{begun, {}}}}, {}}; }

class EtcdCluster : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_server::is_installed())
      GTEST_SKIP() << "there is no /usr/bin/etcd (Debian: package etcd-server)";
    servers = test::make_etcd_cluster(3);
    for (const auto& each : servers) options.endpoints.push_back(each->url());
    options.limit = std::chrono::milliseconds(600);
  }

  std::vector<std::unique_ptr<test::etcd_server>> servers;
  etcd_options options;
};

TEST_F(EtcdCluster, GoesOnWithoutTheEndpointThatItHasUsed) {
  std::uint64_t answered = 0;
  int hints = 0;
  etcd_store store(
      test::loop(), {options, "d", 1, place_of_one},
      {.answered = [&](std::uint64_t number, const auto&, const auto&) { answered = number; },
       .hint = [&] { ++hints; },
       .trouble = [](const std::string&) {},
       .recovered = [] {}});
  store.begin_watch();
  store.submit({1, beats(1)});
  ASSERT_TRUE(test::comes_true([&] { return answered == 1 && hints > 0; }));

  servers[0]->end();
  // A transaction may be lost with the endpoint, or with the leader that it may have been.
  std::uint64_t number = 1;
  const auto is_answered = [&] {
    store.submit({++number, beats(2)});
    return test::comes_true([&] { return answered == number; }, std::chrono::seconds(1));
  };
  ASSERT_TRUE(test::comes_true(is_answered));

  // The watch goes on at another endpoint.
  etcd_client other(test::loop(), options, "d");
  epoch_number begun = 2;
  const int before = hints;
  ASSERT_TRUE(test::comes_true([&] {
    try {
      (void)test::now(other.carry_out(beats(++begun), 1, place_of_one));
    } catch (const etcd_error& e) {
      EXPECT_NE(e.request(), fate::refused);
    }
    test::run_for(std::chrono::milliseconds(50));
    return hints >= before + 3;
  }));
}

TEST_F(EtcdCluster, SaysThatThereIsNoLeader) {
  etcd_client client(test::loop(), options, "d");
  EXPECT_TRUE(test::now(client.carry_out(beats(1), 1, place_of_one)).what.succeeded);
  servers[0]->end();
  servers[1]->end();
  std::string last;
  ASSERT_TRUE(test::comes_true([&] {
    try {
      (void)test::now(client.carry_out(beats(2), 1, place_of_one));
    } catch (const etcd_error& e) {
      last = e.what();
      return e.request() == fate::unreached;
    }
    return false;
  })) << last;
  EXPECT_SAYS(last, servers[2]->url() + "/v3/kv/txn: etcdserver: no leader");
  EXPECT_SAYS(last, servers[0]->url());
}

}  // namespace
}  // namespace lockflight::cluster
