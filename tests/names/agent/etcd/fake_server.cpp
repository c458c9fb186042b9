#include "tests/names/agent/etcd/fake_server.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace lockflight::cluster::test {
namespace {

/// How long the first request is, when all of it is there.
std::optional<std::size_t> length_of_request(const std::string& received) {
  const std::size_t head = received.find("\r\n\r\n");
  if (head == std::string::npos) return std::nullopt;
  constexpr std::string_view name = "Content-Length: ";
  const std::size_t field = received.find(name);
  const std::size_t body =
      field < head ? std::stoul(received.substr(field + name.size(), 10)) : std::size_t{0};
  const std::size_t all = head + 4 + body;
  return received.size() >= all ? std::optional(all) : std::nullopt;
}

}  // namespace

fake_server::fake_server(handler handle) : handle_(std::move(handle)) {
  listener_ = descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  int ends[2];
  if (bind(listener_.get(), generic, size) != 0 || listen(listener_.get(), 16) != 0 ||
      getsockname(listener_.get(), generic, &size) != 0 || pipe2(ends, O_CLOEXEC) != 0)
    throw std::runtime_error("the test's own server does not start");
  stop_read_ = descriptor(ends[0]);
  stop_write_ = descriptor(ends[1]);
  url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { run(); });
}

fake_server::~fake_server() {
  stop_write_ = descriptor();
  thread_.join();
}

void fake_server::run() {
  std::map<int, std::pair<descriptor, std::string>> connections;
  while (true) {
    std::vector<pollfd> all{{stop_read_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& [fd, each] : connections) all.push_back({fd, POLLIN, 0});
    poll(all.data(), all.size(), -1);
    if (all[0].revents != 0) return;
    if (all[1].revents != 0) {
      descriptor fresh(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      const int fd = fresh.get();
      ++connections_;
      connections[fd].first = std::move(fresh);
    }
    for (std::size_t i = 2; i < all.size(); ++i)
      if (all[i].revents != 0 && !serve(all[i].fd, connections[all[i].fd].second))
        connections.erase(all[i].fd);
  }
}

bool fake_server::serve(int connection, std::string& received) {
  char part[4096];
  const ssize_t got = recv(connection, part, sizeof part, 0);
  if (got <= 0) return false;
  received.append(part, static_cast<std::size_t>(got));
  const std::optional<std::size_t> length = length_of_request(received);
  if (!length) return true;
  const response answer = handle_(++requests_, received.substr(0, *length));
  received.erase(0, *length);
  if (answer.how == way::closes) return false;
  if (answer.how == way::hangs) return true;
  const std::string text = "HTTP/1.1 " + std::to_string(answer.status) +
                           " Status\r\nContent-Length: " + std::to_string(answer.body.size()) +
                           "\r\n\r\n" + answer.body;
  return send(connection, text.data(), text.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

}  // namespace lockflight::cluster::test
