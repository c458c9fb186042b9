// Coroutines on an agent's event loop.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

namespace lockflight::cluster {

/// Starts a coroutine, whose first part may run before this function returns. If the coroutine
/// throws, the exception leaves io_context::run().
inline void start(asio::io_context& io, asio::awaitable<void> what) {
  asio::co_spawn(io, std::move(what), [](const std::exception_ptr& thrown) {
    if (thrown) std::rethrow_exception(thrown);
  });
}

/// Runs the loop, on this thread, until the coroutine has ended, and returns its result or throws
/// what it throws. No other thread runs the loop.
template <class T>
T wait_for(asio::io_context& io, asio::awaitable<T> what) {
  std::optional<T> result;
  std::exception_ptr failure;
  bool has_ended = false;
  io.restart();  // an earlier run may have found nothing to do
  asio::co_spawn(io, std::move(what), [&](const std::exception_ptr& thrown, T value) {
    result = std::move(value);
    failure = thrown;
    has_ended = true;
  });
  while (!has_ended) io.run_one();
  io.restart();
  if (failure) std::rethrow_exception(failure);
  return std::move(*result);
}

/// Runs coroutines one after the other, in the order in which they were added. If one throws, the
/// exception leaves io_context::run(), and no other coroutine is run. The loop must not run after
/// the queue is destroyed.
class in_turn {
 public:
  explicit in_turn(asio::io_context& io) : io_(io) {}

  void add(std::function<asio::awaitable<void>()> next) {
    waiting_.push_back(std::move(next));
    if (!std::exchange(is_running_, true)) start(io_, run());
  }

 private:
  asio::awaitable<void> run() {
    while (!waiting_.empty()) {
      const std::function<asio::awaitable<void>()> next = std::move(waiting_.front());
      waiting_.pop_front();
      co_await next();
    }
    is_running_ = false;
  }

  asio::io_context& io_;
  std::deque<std::function<asio::awaitable<void>()>> waiting_;
  bool is_running_ = false;
};

}  // namespace lockflight::cluster
