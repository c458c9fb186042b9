// etcd with users and passwords.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "names/agent/etcd/base64.hpp"
#include "names/agent/etcd/client.hpp"
#include "names/agent/etcd/store.hpp"
#include "tests/names/agent/etcd/etcd_server.hpp"

namespace lockflight::cluster {
namespace {

std::string token_in(const std::string& reply) {
  const std::string name = R"("token":")";
  const std::size_t begin = reply.find(name) + name.size();
  return reply.substr(begin, reply.find('"', begin) - begin);
}

std::string refusal_with(const etcd_options& options) {
  try {
    etcd_client client(test::loop(), options, "d");
    (void)test::now(client.read_view());
    return "";
  } catch (const etcd_error& e) {
    EXPECT_EQ(e.request(), fate::refused);
    return e.what();
  }
}

/// The user `agent` may read and write the keys of the domain `d`; `nobody` may do nothing.
class EtcdUsers : public test::WithEtcd {
 protected:
  void SetUp() override {
    test::WithEtcd::SetUp();
    if (IsSkipped() || is_set_up) return;
    is_set_up = true;
    before_users = std::make_unique<etcd_client>(loop_before, options("agent", "good"), "d");
    (void)wait_for(loop_before, before_users->read_view());
    EXPECT_FALSE(wait_for(loop_before, before_users->has_authentication()));
    const domain_keys names("d");
    for (const char* const user : {"root", "agent", "nobody"})
      server().post("/v3/auth/user/add",
                    std::string(R"({"name":")") + user + R"(","password":"good"})");
    for (const char* const role : {"root", "agent"}) {
      server().post("/v3/auth/role/add", std::string(R"({"name":")") + role + R"("})");
      server().post("/v3/auth/user/grant",
                    std::string(R"({"user":")") + role + R"(","role":")" + role + R"("})");
    }
    server().post("/v3/auth/role/grant",
                  R"({"name":"agent","perm":{"permType":"READWRITE","key":")" +
                      to_base64("lockflight/d/") + R"(","range_end":")" +
                      to_base64("lockflight/d0") + R"("}})");
    server().post("/v3/auth/enable", "{}");
  }
  static void TearDownTestSuite() {
    before_users.reset();
    test::WithEtcd::TearDownTestSuite();
  }

  [[nodiscard]] static etcd_options options(const std::string& user, const std::string& password) {
    etcd_options options = server().options();
    options.user = user;
    options.password = password;
    return options;
  }

  inline static bool is_set_up = false;
  /// A client that has met etcd without users.
  inline static asio::io_context loop_before;
  inline static std::unique_ptr<etcd_client> before_users;
};

TEST_F(EtcdUsers, NoticesThatAuthenticationIsSwitchedOn) {
  EXPECT_TRUE(wait_for(loop_before, before_users->has_authentication()));
  EXPECT_GT(wait_for(loop_before, before_users->read_view())->keys.at, 0);
}

TEST_F(EtcdUsers, LetsInWithTheRightPassword) {
  etcd_client client(test::loop(), options("agent", "good"), "d");
  const transaction writes{{}, {{{key_kind::beat, 1}, beat_value{}}}, {}};
  EXPECT_TRUE(test::now(client.carry_out(writes, 1, {"a:1", "a"})).what.succeeded);
  EXPECT_TRUE(test::now(client.has_authentication()));
  EXPECT_NE(test::now(client.ping()).version, "");
}

TEST_F(EtcdUsers, RefusesTheWrongPassword) {
  const std::string said = refusal_with(options("agent", "wrong"));
  EXPECT_SAYS(said, server().url());
  EXPECT_SAYS(said, "'agent' cannot authenticate");
  EXPECT_SAYS(said, "invalid user ID or password");
  EXPECT_EQ(said.find("wrong"), std::string::npos);
}

TEST_F(EtcdUsers, RefusesWithoutAUser) {
  EXPECT_SAYS(refusal_with(options("", "")), "etcd wants a user and a password");
}

TEST_F(EtcdUsers, RefusesAUserWhoMayNot) {
  const std::string said = refusal_with(options("nobody", "good"));
  EXPECT_SAYS(said, "permission denied");
  EXPECT_SAYS(said, "readwrite for the prefix lockflight/d/");
}

TEST_F(EtcdUsers, RenewsATokenThatIsRefused) {
  etcd_client client(test::loop(), options("agent", "good"), "d");
  (void)test::now(client.read_view());
  // Tokens end with the authentication that gave them.
  const std::string root =
      token_in(server().post("/v3/auth/authenticate", R"({"name":"root","password":"good"})"));
  server().post("/v3/auth/disable", "{}", root);
  server().post("/v3/auth/enable", "{}");
  const transaction writes{{}, {{{key_kind::beat, 1}, beat_value{}}}, {}};
  EXPECT_TRUE(test::now(client.carry_out(writes, 1, {"a:1", "a"})).what.succeeded);
}

TEST_F(EtcdUsers, WatchesAsAUser) {
  int hints = 0;
  const etcd_watch watch(test::loop(), options("agent", "good"), domain_keys("d").core(),
                         [&](const etcd_changes&) { ++hints; });
  ASSERT_TRUE(test::comes_true([&] { return hints == 1; }));
  etcd_client client(test::loop(), options("agent", "good"), "d");
  const transaction writes{{}, {{{key_kind::beat, 1}, beat_value{7, {}}}}, {}};
  (void)test::now(client.carry_out(writes, 1, {"a:1", "a"}));
  EXPECT_TRUE(test::comes_true([&] { return hints == 2; }));
}

}  // namespace
}  // namespace lockflight::cluster
