// HTTP requests, one after the other, over connections that stay open, by libcurl on an event loop.
// The program has to ignore SIGPIPE, which a write to a connection that was closed raises in TLS.
//
// A request's body leaves at most once. libcurl would send it again over a new connection if an
// open one broke before the reply, and the server may have carried it out by then.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockflight::cluster {

/// PEM files. An empty name: the system's authorities, and no certificate of the client.
struct tls_files {
  std::string authority;
  std::string certificate;
  std::string key;
};

struct http_request {
  std::string url;
  std::string body;
  std::vector<std::string> headers;
  std::chrono::milliseconds connect_limit{0};
  /// For the whole request; if the reply is a stream, until its first part has come.
  std::chrono::milliseconds limit{0};
  /// Called with each part of the body of a reply with the status 200, which is a stream then.
  std::function<void(std::string_view part)> on_part = nullptr;
  /// A stream is given up after that time.
  std::chrono::milliseconds stream_limit{0};
};

struct http_reply {
  int status = 0;
  std::string body;   ///< empty for a stream
  std::string error;  ///< empty if a whole reply came
  /// True if part of the body may have left this host.
  bool was_sent = false;
};

class http_client {
 public:
  http_client(asio::io_context& io, const tls_files& files);

  /// One request at a time. The body of a POST is JSON. A coroutine that has not ended when the
  /// client is destroyed must not be resumed.
  [[nodiscard]] asio::awaitable<http_reply> post(http_request what);

 private:
  class transfers;

  tls_files files_;
  std::shared_ptr<transfers> transfers_;
};

}  // namespace lockflight::cluster
