// libcurl's transfers on an event loop, as curl_multi_socket_action(3) says: libcurl tells which
// sockets it waits for and until when, and is told when one of them is ready or the time is over.
#pragma once

#include <curl/curl.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>

namespace lockflight::cluster {

class curl_loop : public std::enable_shared_from_this<curl_loop> {
 public:
  /// Calls `after` after each step of libcurl's, as long as this object exists.
  static std::shared_ptr<curl_loop> make(asio::io_context& io, std::function<void()> after);
  curl_loop(const curl_loop&) = delete;
  curl_loop& operator=(const curl_loop&) = delete;
  ~curl_loop();

  [[nodiscard]] CURLM* multi() const { return multi_; }

 private:
  struct socket;

  curl_loop(asio::io_context& io, std::function<void()> after);
  static int wait_for_socket(CURL*, curl_socket_t is, int wanted, void* self, void*);
  static int wait_for_time(CURLM*, long ms, void* self);
  void wait(curl_socket_t is, const std::shared_ptr<socket>& on);
  void act(curl_socket_t is);

  asio::io_context& io_;
  asio::steady_timer timer_;
  std::function<void()> after_;
  std::map<curl_socket_t, std::shared_ptr<socket>> sockets_;
  CURLM* multi_ = nullptr;
};

}  // namespace lockflight::cluster
