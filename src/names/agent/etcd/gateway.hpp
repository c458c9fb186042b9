// etcd's HTTP gateway: JSON requests to one of several endpoints, with a user's token if need be.
//
// A request ends in a reply, or in an etcd_error that says whether etcd may have carried it out.
//
// Only etcd's users are known to its gateway. With `--client-cert-auth` etcd asks for a
// certificate, but takes no user's name from it. As the gateway is a client of its own etcd, etcd's
// certificate must then be good for a client, too (extendedKeyUsage serverAuth and clientAuth).
#pragma once

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "names/agent/etcd/transfer.hpp"

namespace lockflight::cluster {

/// The fate of a request without a good reply.
enum class fate : std::uint8_t {
  refused,    ///< etcd has read it and said no
  unreached,  ///< no etcd has got it
  unknown,    ///< etcd may have carried the request out, or may yet
};

/// The message has the URL of each endpoint that was tried, and what went wrong there.
class etcd_error : public std::runtime_error {
 public:
  etcd_error(fate of, const std::string& text, bool is_about_password = false)
      : std::runtime_error(text), fate_(of), is_about_password_(is_about_password) {}
  [[nodiscard]] fate request() const { return fate_; }
  /// True if the same request may be answered later: etcd may come, or be quicker, or the file may
  /// get the password that etcd has.
  [[nodiscard]] bool may_pass() const { return fate_ != fate::refused || is_about_password_; }

 private:
  fate fate_;
  bool is_about_password_;
};

/// True if `url` is http://HOST:PORT or https://HOST:PORT, perhaps with slashes behind it.
[[nodiscard]] bool is_endpoint(std::string_view url);

/// The first line of the file; empty if there is none.
[[nodiscard]] std::string password_in(const std::string& file);

struct etcd_options {
  /// http://HOST:PORT or https://HOST:PORT
  std::vector<std::string> endpoints;
  std::string user;  ///< empty: none
  std::string password;
  std::string password_file;  ///< read again when etcd refuses the password; empty: none
  tls_files tls;
  /// For a request at all endpoints together.
  std::chrono::milliseconds limit{1'500};
};

/// Says whether a request may be sent again when it may have been carried out.
enum class sending : std::uint8_t { once, repeatable };

/// A gateway carries out one request at a time.
class etcd_gateway {
 public:
  /// Throws std::invalid_argument for endpoints that are none.
  etcd_gateway(asio::io_context& io, const etcd_options& options);

  /// POSTs to the endpoint that answered last, or to the next ones. Throws etcd_error.
  [[nodiscard]] asio::awaitable<nlohmann::json> post(std::string path,
                                                     const nlohmann::json& request, sending how);
  /// The same, for a reply that goes on until the limit; the function is called with each part of
  /// it. Returns at the end of the reply. Throws etcd_error if none began, or if it broke off.
  [[nodiscard]] asio::awaitable<void> stream(std::string path, const nlohmann::json& request,
                                             std::function<void(std::string_view part)> on_part,
                                             std::chrono::milliseconds limit);
  /// True if etcd wants users to authenticate. Throws etcd_error if it does not say.
  [[nodiscard]] asio::awaitable<bool> has_authentication();
  /// For each later request, at all endpoints together, if that is less than the options' limit.
  void limit_to(std::chrono::milliseconds limit) {
    options_.limit = std::min(options_.limit, limit);
  }
  /// The next request goes to another endpoint, if there is one.
  void avoid_endpoint() { current_ = (current_ + 1) % options_.endpoints.size(); }
  /// The next request authenticates again.
  void forget_token() { token_.clear(); }
  /// The endpoint that the next request goes to first.
  [[nodiscard]] const std::string& endpoint() const { return options_.endpoints[current_]; }

 private:
  using clock = std::chrono::steady_clock;
  struct attempt;
  struct limits;

  [[nodiscard]] asio::awaitable<nlohmann::json> at_each_endpoint(attempt what);
  [[nodiscard]] asio::awaitable<nlohmann::json> at_endpoint(const attempt& what,
                                                            const limits& until);
  [[nodiscard]] asio::awaitable<nlohmann::json> exchange(const attempt& what, const limits& until);
  [[nodiscard]] asio::awaitable<void> authenticate(const limits& until);
  [[nodiscard]] asio::awaitable<void> take_token(const limits& until);
  [[nodiscard]] asio::awaitable<nlohmann::json> ask_for_token(const limits& until);
  [[nodiscard]] bool has_new_password();

  etcd_options options_;
  http_client client_;
  std::size_t current_ = 0;
  std::string token_;
  /// How long a password check may take; 0: as long as any request. An etcd that has not answered
  /// in time gets more the next time.
  std::chrono::milliseconds password_limit_{0};
  bool is_open_ = false;  // etcd has said that it knows no users
};

}  // namespace lockflight::cluster
