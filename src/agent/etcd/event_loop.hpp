// Coroutines on an agent's event loop.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/use_future.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <utility>

namespace lockflight::cluster {

/// Runs the loop, on this thread, until the coroutine has ended, and returns its result or throws
/// what it throws. No other thread runs the loop.
template <class T>
T wait_for(asio::io_context& io, asio::awaitable<T> what) {
  std::future<T> result = asio::co_spawn(io, std::move(what), asio::use_future);
  while (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) io.run_one();
  io.restart();  // the loop has stopped if nothing else was to be done
  return result.get();
}

/// Runs coroutines one after the other, in the order in which they were added. They must not throw.
/// If the queue ends before they do, the loop must not run any more.
class in_turn {
 public:
  explicit in_turn(asio::io_context& io) : io_(io) {}

  void add(std::function<asio::awaitable<void>()> next) {
    waiting_.push_back(std::move(next));
    if (!std::exchange(is_running_, true)) asio::co_spawn(io_, run(), asio::detached);
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
