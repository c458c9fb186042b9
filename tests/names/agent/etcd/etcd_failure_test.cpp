// What the client makes of endpoints that are away, hang, break off or talk nonsense: above all
// that a transaction leaves at most once, and that the store ends promptly.
#include <gtest/gtest.h>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "names/agent/etcd/client.hpp"
#include "names/agent/etcd/store.hpp"
#include "tests/names/agent/etcd/etcd_server.hpp"
#include "tests/names/agent/etcd/fake_server.hpp"

namespace lockflight::cluster {
namespace {

using std::chrono::milliseconds;
using test::fake_server;

const member_place any_place{"127.0.0.1:4711", "here"};
const transaction a_write{{}, {{{key_kind::beat, 1}, beat_value{}}}, {}};
const transaction a_read;
const std::string good_reply =
    R"({"header":{"revision":"5"},"succeeded":true,"responses":[{"response_range":{}}]})";
const fake_server::response closes{fake_server::way::closes};
const fake_server::response hangs{fake_server::way::hangs};
const fake_server::response good{fake_server::way::answers, 200, good_reply};

etcd_options options_of(std::vector<std::string> endpoints,
                        milliseconds limit = milliseconds(300)) {
  etcd_options options;
  options.endpoints = std::move(endpoints);
  options.limit = limit;
  return options;
}

/// For requests of which none hangs, on a machine that is slow.
constexpr milliseconds patiently{10'000};

std::string nobody() { return "http://127.0.0.1:" + std::to_string(test::free_port()); }

etcd_error error_of(etcd_client& client, const transaction& what) {
  try {
    (void)test::now(client.carry_out(what, 1, any_place));
  } catch (const etcd_error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return {fate::refused, ""};
}

etcd_error error_of(const std::vector<std::string>& endpoints, const transaction& what) {
  etcd_client client(test::loop(), options_of(endpoints), "d");
  return error_of(client, what);
}

double seconds_of(const std::function<void()>& what) {
  const auto start = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(EtcdFailure, NamesEachEndpointAndItsError) {
  const std::string one = nobody();
  const std::string other = nobody();
  etcd_client client(test::loop(), options_of({one, other}, patiently), "d");
  try {
    (void)test::now(client.ping());
    FAIL();
  } catch (const etcd_error& e) {
    EXPECT_EQ(e.request(), fate::unreached);
    EXPECT_SAYS(e.what(), one);
    EXPECT_SAYS(e.what(), other);
    EXPECT_SAYS(e.what(), "connect");
  }
}

TEST(EtcdFailure, GoesToTheNextEndpointWhenOneIsAway) {
  fake_server there([](int, const std::string&) { return good; });
  etcd_client client(test::loop(), options_of({nobody(), there.url()}, patiently), "d");
  EXPECT_EQ(test::now(client.carry_out(a_write, 1, any_place)).what.seen->at, 5);
  EXPECT_EQ(test::now(client.carry_out(a_write, 1, any_place)).what.seen->at, 5);
  EXPECT_EQ(there.requests(), 2);
  EXPECT_EQ(there.connections(), 1);  // kept open
}

TEST(EtcdFailure, SendsATransactionOnce) {
  // libcurl would send it again after the end of a connection that was open before.
  fake_server breaks([](int number, const std::string&) { return number == 2 ? closes : good; });
  fake_server other([](int, const std::string&) { return good; });
  etcd_client client(test::loop(), options_of({breaks.url(), other.url()}), "d");
  (void)test::now(client.carry_out(a_write, 1, any_place));
  EXPECT_EQ(error_of(client, a_write).request(), fate::unknown);
  EXPECT_EQ(breaks.requests(), 2);
  EXPECT_EQ(other.requests(), 0);
  (void)test::now(client.carry_out(a_write, 1, any_place));  // goes to the other one
  EXPECT_EQ(breaks.requests(), 2);
  EXPECT_EQ(other.requests(), 1);
}

TEST(EtcdFailure, SendsAReadAgain) {
  fake_server breaks([](int, const std::string&) { return closes; });
  fake_server hanging([](int, const std::string&) { return hangs; });
  fake_server other([](int, const std::string&) { return good; });
  etcd_client client(test::loop(), options_of({breaks.url(), hanging.url(), other.url()}), "d");
  EXPECT_EQ(test::now(client.carry_out(a_read, 1, any_place)).what.seen->at, 5);
  EXPECT_EQ(breaks.requests(), 1);
  EXPECT_EQ(hanging.requests(), 1);
}

TEST(EtcdFailure, TellsWhatIsNotKnownFromWhatIsRefused) {
  const auto fate_of = [](const fake_server::response& answer, const transaction& what) {
    fake_server server([&](int, const std::string&) { return answer; });
    const etcd_error error = error_of({server.url()}, what);
    EXPECT_SAYS(error.what(), server.url() + "/v3/kv/txn: ");
    return error.request();
  };
  const auto reply = [](int status, const std::string& body) {
    return fake_server::response{fake_server::way::answers, status, body};
  };
  EXPECT_EQ(fate_of(hangs, a_write), fate::unknown);
  EXPECT_EQ(fate_of(closes, a_write), fate::unknown);
  EXPECT_EQ(
      fate_of(reply(503, R"({"message":"etcdserver: request timed out","code":14})"), a_write),
      fate::unknown);
  EXPECT_EQ(fate_of(reply(408, "{}"), a_write), fate::unknown);
  EXPECT_EQ(fate_of(reply(200, "nonsense"), a_write), fate::unknown);
  EXPECT_EQ(fate_of(reply(503, R"({"message":"etcdserver: no leader","code":14})"), a_write),
            fate::unreached);
  EXPECT_EQ(fate_of(reply(404, "Not Found"), a_write), fate::unreached);
  EXPECT_EQ(fate_of(reply(403, R"({"error":"etcdserver: permission denied","code":7})"), a_write),
            fate::refused);
  EXPECT_EQ(fate_of(reply(400, "\x01"), a_write), fate::refused);
}

TEST(EtcdFailure, RefusesRepliesThatAreNotEtcds) {
  for (const char* const body :
       {"[]", "{}", R"({"header":7})", R"({"header":{"revision":"x"}})",
        R"({"header":{"revision":"5"},"responses":7})",
        R"({"header":{"revision":"5"},"responses":[7]})",
        R"({"header":{"revision":"5"},"responses":[{"response_range":{"kvs":[7]}}]})",
        R"({"header":{"revision":"5"},"responses":[{"response_range":{"kvs":[{"key":"?"}]}}]})",
        R"({"responses":[{"response_range":{}}]})"}) {
    fake_server server(
        [&](int, const std::string&) { return fake_server::response{.body = body}; });
    EXPECT_EQ(error_of({server.url()}, a_write).request(), fate::unknown) << body;
  }
}

TEST(EtcdFailure, IsOverWithinItsLimit) {
  fake_server hanging([](int, const std::string&) { return hangs; });
  const double seconds = seconds_of([&] { (void)error_of({hanging.url()}, a_write); });
  EXPECT_GE(seconds, 0.29);
  EXPECT_LT(seconds, 1.5);
}

TEST(EtcdFailure, EndsPromptlyWhileRequestsHang) {
  fake_server hanging([](int, const std::string&) { return hangs; });
  const etcd_events none{.answered = [](auto, const auto&, const auto&) {},
                         .hint = [] {},
                         .trouble = [](const std::string& what) { ADD_FAILURE() << what; },
                         .recovered = [] {}};
  const etcd_store_options options{options_of({hanging.url()}, std::chrono::seconds(60)), "d", 1,
                                   any_place};
  const auto ends = [&] {
    asio::io_context io;
    etcd_store store(io, options, none);
    store.submit({1, a_write});
    store.begin_watch();
    while (hanging.requests() < 2) io.run_one();
    io.run_for(milliseconds(250));  // until all of its timers wait for longer
  };
  EXPECT_LT(seconds_of(ends), 5);
}

TEST(EtcdFailure, AnExceptionOfACoroutineLeavesTheLoop) {
  const auto throws_at_once = []() -> asio::awaitable<void> {
    throw std::runtime_error("at once");
    co_return;
  };
  const auto throws_later = []() -> asio::awaitable<void> {
    asio::steady_timer soon(co_await asio::this_coro::executor, milliseconds(1));
    co_await soon.async_wait(asio::use_awaitable);
    throw std::runtime_error("later");
  };
  for (const std::function<asio::awaitable<void>()>& each :
       {std::function<asio::awaitable<void>()>(throws_at_once),
        std::function<asio::awaitable<void>()>(throws_later)}) {
    asio::io_context io;
    in_turn turns(io);
    turns.add(each);
    EXPECT_THROW(io.run(), std::runtime_error);
    io.restart();
    in_turn from_the_loop(io);
    asio::post(io, [&] { from_the_loop.add(each); });
    EXPECT_THROW(io.run(), std::runtime_error);
  }
}

TEST(EtcdFailure, WatchesAgainAfterNonsense) {
  fake_server odd([](int number, const std::string&) -> fake_server::response {
    if (number == 1) return closes;
    const char* const bodies[] = {"\x01\xff\n",
                                  "[7]\n{\"result\":7}\n{\"result\":{\"events\":[7]}}\n",
                                  "{\"error\":{}}\n", "{\"result\":{\"created\":true}}\n"};
    return {.body = bodies[number % 4]};
  });
  int hints = 0;
  const etcd_watch watch(test::loop(), options_of({odd.url()}), domain_keys("d").core(),
                         [&](const etcd_changes&) { ++hints; });
  EXPECT_TRUE(test::comes_true([&] { return odd.requests() >= 8; }));
  EXPECT_GE(hints, 3);
}

TEST(EtcdFailure, RenewsTheTokenOfAWatch) {
  // etcd says in a good reply that it does not know a token any more.
  fake_server forgetful([tokens = 0](int, const std::string& request) mutable {
    fake_server::response answer;
    if (request.find("/v3/auth/authenticate") != std::string::npos)
      answer.body = R"({"token":"number)" + std::to_string(++tokens) + R"("})";
    else if (request.find("Authorization: number2") != std::string::npos)
      answer.body = "{\"result\":{\"created\":true}}\n";
    else
      answer.body = "{\"result\":{\"created\":true,\"canceled\":true}}\n";
    return answer;
  });
  etcd_options options = options_of({forgetful.url()});
  options.user = "u";
  int hints = 0;
  const etcd_watch watch(test::loop(), options, domain_keys("d").core(),
                         [&](const etcd_changes&) { ++hints; });
  EXPECT_TRUE(test::comes_true([&] { return hints > 0; }));
}

}  // namespace
}  // namespace lockflight::cluster
