#include "cluster/etcd/etcd_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/descriptor.hpp"
#include "base/whole_file.hpp"
#include "cluster/etcd/base64.hpp"

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

bool comes_true(const std::function<bool()>& condition, std::chrono::milliseconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

// ---- the server ----

bool etcd_server::is_installed() { return access(program, X_OK) == 0; }

etcd_server::etcd_server(const std::optional<tls_server>& tls) {
  if (tls) files_ = {tls->authority, tls->certificate, tls->key};
  // Somebody else may take a port before etcd does.
  for (int tries = 0; tries < 5; ++tries) {
    start(tls);
    const bool is_there =
        comes_true([&] { return answers() || waitpid(process_, nullptr, WNOHANG) == process_; }) &&
        answers();
    if (is_there) return;
    end();
  }
  const std::string log = whole_file(folder_.file("log"));
  throw std::runtime_error("etcd does not start: " +
                           log.substr(log.size() - std::min<std::size_t>(log.size(), 2000)));
}

etcd_server::~etcd_server() { end(); }

void etcd_server::start(const std::optional<tls_server>& tls) {
  url_ = (tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(free_port());
  const std::string peers = "http://127.0.0.1:" + std::to_string(free_port());
  std::vector<std::string> words = {program,
                                    "--data-dir",
                                    folder_.file("data"),
                                    "--name",
                                    "test",
                                    "--listen-client-urls",
                                    url_,
                                    "--advertise-client-urls",
                                    url_,
                                    "--listen-peer-urls",
                                    peers,
                                    "--initial-advertise-peer-urls",
                                    peers,
                                    "--initial-cluster",
                                    "test=" + peers,
                                    "--heartbeat-interval",
                                    "10",
                                    "--election-timeout",
                                    "100"};
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

bool etcd_server::answers() const {
  try {
    return etcd_client(options(), "test").ping().leader != 0;
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

void etcd_server::halt() const { kill(process_, SIGSTOP); }

void etcd_server::go_on() const { kill(process_, SIGCONT); }

std::string etcd_server::post(const std::string& path, const std::string& json,
                              const std::string& token) const {
  http_request request{url_ + path, json, {}, std::chrono::seconds(5), std::chrono::seconds(5)};
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  http_reply reply = http_client(files_).post(request);
  EXPECT_EQ(reply.error, "");
  EXPECT_EQ(reply.status, 200) << path << " " << json << ": " << reply.body;
  return std::move(reply.body);
}

void etcd_server::put(const std::string& key, const std::string& text) const {
  (void)post("/v3/kv/put",
             R"({"key":")" + to_base64(key) + R"(","value":")" + to_base64(text) + R"("})");
}

}  // namespace lockflight::cluster::test
