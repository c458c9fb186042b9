#include "tests/names/agent/etcd/etcd_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/whole_file.hpp"
#include "names/agent/etcd/base64.hpp"

namespace lockflight::cluster::test {
namespace {

constexpr const char* program = "/usr/bin/etcd";

/// Starts it with its output in the log. It dies with this thread.
pid_t spawn(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& each : words) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  const descriptor output(open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the call
  dup2(output.get(), STDOUT_FILENO);
  dup2(output.get(), STDERR_FILENO);
  execv(arguments[0], arguments.data());
  _exit(127);
}

std::string local_url(const std::string& scheme) {
  return scheme + "://127.0.0.1:" + std::to_string(free_port());
}

}  // namespace

// ---- helpers ----

temporary_folder::temporary_folder() {
  std::string pattern = std::filesystem::temp_directory_path() / "lockflight-etcd-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "making " + pattern);
  path_ = pattern;
}

temporary_folder::~temporary_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

int free_port() {
  const descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), generic, size) != 0 || getsockname(listener.get(), generic, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "looking for a free port");
  return ntohs(address.sin_port);
}

asio::io_context& loop() {
  [[maybe_unused]] static const auto before = std::signal(SIGPIPE, SIG_IGN);
  static std::unique_ptr<asio::io_context> made;
  static const testing::TestInfo* of = nullptr;
  const testing::TestInfo* const current = testing::UnitTest::GetInstance()->current_test_info();
  if (!made || of != current) made = std::make_unique<asio::io_context>();
  of = current;
  return *made;
}

void run_for(std::chrono::milliseconds time) {
  asio::steady_timer over(loop(), time);
  over.async_wait([](const asio::error_code&) {});
  loop().run_for(time);
  loop().restart();
}

bool comes_true(const std::function<bool()>& condition, std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    run_for(std::chrono::milliseconds(5));
  }
  return true;
}

// ---- the server ----

bool etcd_server::is_installed() { return access(program, X_OK) == 0; }

etcd_server::etcd_server(const std::optional<tls_server>& tls) {
  if (tls) files_ = {tls->authority, tls->certificate, tls->key};
  // Somebody else may take a port before etcd does.
  for (int tries = 0; tries < 5; ++tries) {
    const std::string peer_url = local_url("http");
    start({"test", peer_url, "test=" + peer_url}, tls);
    if (comes_true([&] { return has_ended() || answers(); }) && !has_ended()) return;
    end();
  }
  throw std::runtime_error("etcd does not start: " + log());
}

std::string etcd_server::log() const {
  const std::string all = whole_file(folder_.file("log"));
  constexpr std::size_t most = 2'000;
  return all.substr(all.size() - std::min(all.size(), most));
}

etcd_server::~etcd_server() { end(); }

etcd_server::etcd_server(const membership& in) { start(in, std::nullopt); }

void etcd_server::start(const membership& in, const std::optional<tls_server>& tls) {
  url_ = local_url(tls ? "https" : "http");
  std::vector<std::string> words = {program};
  const auto add = [&](const char* option, const std::string& what) {
    words.insert(words.end(), {option, what});
  };
  add("--data-dir", folder_.file("data"));
  add("--name", in.name);
  add("--listen-client-urls", url_);
  add("--advertise-client-urls", url_);
  add("--listen-peer-urls", in.peer_url);
  add("--initial-advertise-peer-urls", in.peer_url);
  add("--initial-cluster", in.all_peers);
  add("--heartbeat-interval", "20");
  add("--election-timeout", "200");
  if (tls)
    words.insert(words.end(), {"--cert-file", tls->certificate, "--key-file", tls->key,
                               "--trusted-ca-file", tls->authority, "--client-cert-auth"});
  process_ = spawn(words, folder_.file("log"));
  if (process_ < 0) throw std::system_error(errno, std::generic_category(), "starting etcd");
}

void etcd_server::end() {
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
  std::error_code ignored;
  std::filesystem::remove_all(folder_.file("data"), ignored);
}

bool etcd_server::has_ended() {
  if (process_ > 0 && waitpid(process_, nullptr, WNOHANG) == process_) process_ = -1;
  return process_ < 0;
}

bool etcd_server::answers() const {
  try {
    etcd_client client(loop(), options(), "test");
    return now(client.ping()).leader != 0;
  } catch (const etcd_error&) {
    return false;
  }
}

etcd_options etcd_server::options() const {
  etcd_options options;
  options.endpoints = {url_};
  options.tls = files_;
  // Other tests may keep the machine busy.
  options.limit = std::chrono::seconds(5);
  return options;
}

std::vector<std::unique_ptr<etcd_server>> make_etcd_cluster(int many) {
  for (int tries = 0; tries < 5; ++tries) {
    std::vector<etcd_server::membership> members;
    std::string all;
    for (int i = 0; i < many; ++i) {
      members.push_back({"test" + std::to_string(i), local_url("http"), ""});
      all += (i == 0 ? "" : ",") + members.back().name + "=" + members.back().peer_url;
    }
    std::vector<std::unique_ptr<etcd_server>> servers;
    for (etcd_server::membership& each : members) {
      each.all_peers = all;
      servers.push_back(std::make_unique<etcd_server>(each));
    }
    const auto all_answer = [&] {
      return std::all_of(servers.begin(), servers.end(),
                         [](const auto& each) { return each->answers(); });
    };
    if (comes_true(all_answer)) return servers;
  }
  throw std::runtime_error("a cluster of etcds does not start");
}

void etcd_server::halt() const {
  ASSERT_GT(process_, 0);
  kill(process_, SIGSTOP);
}

void etcd_server::go_on() const {
  ASSERT_GT(process_, 0);
  kill(process_, SIGCONT);
}

std::string etcd_server::post(const std::string& path, const std::string& json,
                              const std::string& token) const {
  http_request request{url_ + path, json, {}, std::chrono::seconds(5), std::chrono::seconds(5)};
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  http_client client(loop(), files_);
  http_reply reply = now(client.post(std::move(request)));
  EXPECT_EQ(reply.error, "");
  EXPECT_EQ(reply.status, 200) << path << " " << json << ": " << reply.body;
  return std::move(reply.body);
}

void etcd_server::put(const std::string& key, const std::string& text) const {
  (void)post("/v3/kv/put",
             R"({"key":")" + to_base64(key) + R"(","value":")" + to_base64(text) + R"("})");
}

}  // namespace lockflight::cluster::test
