// The signals that end an agent while it waits for etcd, before its event loop runs.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <chrono>
#include <csignal>
#include <stdexcept>

#include "base/ignored_signal.hpp"

namespace lockflight::cluster {

/// Thrown if the agent is told to end before it has begun.
struct told_to_end : std::runtime_error {
  told_to_end() : std::runtime_error("the agent was told to end before it was a member") {}
};

class start_signals {
 public:
  /// Signals count from here on.
  start_signals() {
    if (!is_ignored(SIGHUP)) signals_.add(SIGHUP);
    signals_.async_wait([this](const asio::error_code& error, int) { is_told_ = !error; });
  }

  /// Throws told_to_end if a signal has come, or comes meanwhile.
  void pause(std::chrono::milliseconds time) {
    io_.run_for(time);
    if (is_told_) throw told_to_end();
  }

 private:
  asio::io_context io_;
  asio::signal_set signals_{io_, SIGTERM, SIGINT};
  bool is_told_ = false;
};

}  // namespace lockflight::cluster
