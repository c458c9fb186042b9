// An agent's access to etcd, on its event loop: transactions, notes, and a watch of the keys of its
// domain.
//
// Transactions are carried out one after the other, in the order in which they were submitted. One
// that no etcd has got is sent again soon, since its agent's time is short after an outage. One
// that etcd refuses, or of which nobody knows, has no answer, and is not sent again: the agent's
// state machine gives up waiting, reads all keys, and decides anew.
#pragma once

#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "names/agent/etcd/client.hpp"
#include "names/agent/etcd/event_loop.hpp"
#include "names/agent/etcd/watch.hpp"
#include "names/cluster/core/effects.hpp"

namespace lockflight::cluster {

struct etcd_store_options {
  etcd_options etcd;
  std::string domain;
  member_id self = 0;
  member_place place;  ///< becomes part of the own member's key
};

/// The event loop calls these functions. If one throws, the exception leaves io_context::run().
/// They must not destroy the store.
struct etcd_events {
  std::function<void(std::uint64_t number, const answer& what,
                     const std::shared_ptr<const etcd_view>& view)>
      answered;
  /// A key may have changed.
  std::function<void()> hint;
  /// A transaction has got no answer. Not called again before recovered().
  std::function<void(const std::string& what)> trouble;
  std::function<void()> recovered;
};

/// The loop must not run after the store is destroyed.
class etcd_store {
 public:
  /// Sends nothing. Throws std::invalid_argument.
  etcd_store(asio::io_context& io, const etcd_store_options& options, etcd_events events);
  etcd_store(const etcd_store&) = delete;
  etcd_store& operator=(const etcd_store&) = delete;

  /// From now on hints are given.
  void begin_watch() {
    watch_.emplace(io_, options_.etcd, domain_keys(options_.domain).core(),
                   [this](const etcd_changes&) { events_.hint(); });
  }

  /// If too many wait, the oldest are dropped: the state machine has given up on them.
  void submit(submitted what);

  /// Sets how long a transaction waits for a reply; to be called before the first one is submitted.
  /// The state machine waits for its patience and no longer, and the next transaction would wait
  /// behind an endpoint that says nothing.
  void limit_to(std::chrono::milliseconds patience) {
    patience_ = patience;
    transactions_.limit_to(patience);
  }

  /// The client for other requests, one at a time, which do not wait for transactions.
  [[nodiscard]] etcd_client& others() { return others_; }
  /// Each transaction and each other request compares the domain's secret from now on; to be called
  /// before the first transaction is submitted.
  [[nodiscard]] asio::awaitable<domain_secret> secret();

 private:
  static constexpr std::uint64_t most_waiting = 8;

  [[nodiscard]] asio::awaitable<void> carry_out(const submitted& what);
  [[nodiscard]] asio::awaitable<std::optional<etcd_answer>> answer_to(const submitted& what);
  void has_failed(const std::string& why);

  asio::io_context& io_;
  etcd_store_options options_;
  etcd_events events_;
  etcd_client transactions_;
  etcd_client others_;
  std::chrono::milliseconds patience_{0};
  bool is_in_trouble_ = false;
  std::uint64_t submitted_ = 0;  // how many were
  in_turn turns_{io_};           // of transactions
  std::optional<etcd_watch> watch_;
};

}  // namespace lockflight::cluster
