#include "names/agent/etcd/curl_loop.hpp"

#include <asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <iterator>
#include <new>
#include <stdexcept>
#include <utility>

namespace lockflight::cluster {
namespace {

void set_up_libcurl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK) throw std::runtime_error("libcurl cannot be set up");
}

}  // namespace

/// A socket that libcurl has opened and will close.
struct curl_loop::socket {
  socket(asio::io_context& io, curl_socket_t is) : watched(io, is) {}
  ~socket() { forget(); }
  socket(const socket&) = delete;
  socket& operator=(const socket&) = delete;

  /// Ends all waits for the socket, so that libcurl may close it.
  void forget() {
    if (watched.is_open()) watched.release();
  }

  asio::posix::stream_descriptor watched;
  bool is_waited_for[2] = {false, false};  // [to read, to write]
  int wanted = CURL_POLL_NONE;
};

std::shared_ptr<curl_loop> curl_loop::make(asio::io_context& io, std::function<void()> after) {
  return std::shared_ptr<curl_loop>(new curl_loop(io, std::move(after)));
}

curl_loop::curl_loop(asio::io_context& io, std::function<void()> after)
    : io_(io), timer_(io), after_(std::move(after)) {
  set_up_libcurl();
  multi_ = curl_multi_init();
  if (multi_ == nullptr) throw std::bad_alloc();
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &curl_loop::wait_for_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &curl_loop::wait_for_time);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
}

curl_loop::~curl_loop() {
  for (const auto& [is, each] : sockets_) each->forget();
  curl_multi_cleanup(multi_);
}

int curl_loop::wait_for_socket(CURL*, curl_socket_t is, int wanted, void* self, void*) {
  curl_loop& all = *static_cast<curl_loop*>(self);
  if (wanted == CURL_POLL_REMOVE) {
    if (const auto at = all.sockets_.find(is); at != all.sockets_.end()) at->second->forget();
    all.sockets_.erase(is);
    return 0;
  }
  try {
    std::shared_ptr<socket>& at = all.sockets_[is];
    if (!at) at = std::make_shared<socket>(all.io_, is);
    at->wanted = wanted;
    all.wait(is, at);
    return 0;
  } catch (const std::exception&) {
    constexpr int is_refused = -1;  // libcurl ends its transfers then
    all.sockets_.erase(is);
    return is_refused;
  }
}

int curl_loop::wait_for_time(CURLM*, long ms, void* self) {
  curl_loop& all = *static_cast<curl_loop*>(self);
  all.timer_.cancel();
  if (ms < 0) return 0;
  all.timer_.expires_after(std::chrono::milliseconds(ms));
  all.timer_.async_wait([weak = all.weak_from_this()](const asio::error_code& error) {
    if (const auto alive = weak.lock(); alive && !error) alive->act(CURL_SOCKET_TIMEOUT);
  });
  return 0;
}

/// Waits for what libcurl wants of the socket, and goes on as long as libcurl wants it.
void curl_loop::wait(curl_socket_t is, const std::shared_ptr<socket>& on) {
  using asio::posix::stream_descriptor;
  struct direction {
    stream_descriptor::wait_type type;
    int poll;
  };
  constexpr direction directions[] = {{stream_descriptor::wait_read, CURL_POLL_IN},
                                      {stream_descriptor::wait_write, CURL_POLL_OUT}};
  for (std::size_t i = 0; i < std::size(directions); ++i) {
    const direction& each = directions[i];
    if ((on->wanted & each.poll) == 0 || std::exchange(on->is_waited_for[i], true)) continue;
    on->watched.async_wait(
        each.type, [weak = weak_from_this(), on, is, each, i](const asio::error_code& error) {
          on->is_waited_for[i] = false;
          const auto alive = weak.lock();
          if (!alive || error || (on->wanted & each.poll) == 0) return;
          alive->act(is);
          // The number may be that of another socket by now.
          const auto at = alive->sockets_.find(is);
          if (at != alive->sockets_.end() && at->second == on) alive->wait(is, on);
        });
  }
}

/// libcurl looks by itself whether the socket can be read or written, and reads first: a server
/// that refuses a certificate says so and closes the connection, to which libcurl may be about to
/// write.
void curl_loop::act(curl_socket_t is) {
  constexpr int look = 0;
  int running = 0;
  curl_multi_socket_action(multi_, is, look, &running);
  after_();
}

}  // namespace lockflight::cluster
