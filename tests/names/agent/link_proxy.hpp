// A network between two agents that a test can spoil: it cuts connections, swallows what is sent in
// a direction, or stops reading.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockflight::cluster::testing_links {

using asio::ip::tcp;

class proxy : public std::enable_shared_from_this<proxy> {
 public:
  static std::shared_ptr<proxy> before(asio::io_context& io, std::uint16_t target);

  [[nodiscard]] std::string address() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  void close();
  /// Breaks the connections that there are.
  void cut();
  [[nodiscard]] int connections() const { return connections_; }

  /// How many bytes a new connection carries before it breaks. Asked for each.
  std::function<std::size_t()> life = [] { return SIZE_MAX; };
  bool swallows_requests = false;  ///< what the dialer sends
  bool swallows_answers = false;
  /// From then on nothing is read, from either side.
  bool stops = false;
  /// Of a connection that stops: goes on.
  void go_on();

 private:
  struct pair;
  proxy(asio::io_context& io, std::uint16_t target);
  void accept();
  void forward(const std::shared_ptr<pair>& of, bool is_request);

  asio::io_context& io_;
  tcp::acceptor acceptor_;
  std::uint16_t target_;
  int connections_ = 0;
  std::vector<std::weak_ptr<pair>> pairs_;
  std::vector<std::function<void()>> stopped_;
};

}  // namespace lockflight::cluster::testing_links
