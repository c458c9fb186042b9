// An agent's access to etcd: its transactions are carried out on one thread, and another watches
// the keys of its domain.
//
// Transactions are carried out one after the other, in the order in which they were submitted. One
// that no etcd has got is sent again soon, since its agent's time is short after an outage. One
// that etcd refuses, or of which nobody knows, has no answer, and is not sent again: the agent's
// state machine gives up waiting, reads all keys, and decides anew.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "agent/etcd/client.hpp"
#include "agent/etcd/watch.hpp"
#include "cluster/core/effects.hpp"

namespace lockflight::cluster {

struct etcd_store_options {
  etcd_options etcd;
  std::string domain;
  member_id self = 0;
  member_place place;  ///< becomes part of the own member's key
};

/// Called on the store's threads, from its constructor until its destructor returns. They must not
/// throw, and must not destroy the store.
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

class etcd_store {
 public:
  /// Sends nothing that it waits for. Throws std::invalid_argument.
  etcd_store(const etcd_store_options& options, etcd_events events);
  etcd_store(const etcd_store&) = delete;
  etcd_store& operator=(const etcd_store&) = delete;
  /// Gives up what has no reply yet, and what waits.
  ~etcd_store();

  /// From any thread, also from a call of the events. If too many wait, the oldest are dropped: the
  /// state machine has given up on them.
  void submit(submitted what);

  /// Sets how long a transaction waits for a reply; to be called before the first one is submitted.
  /// The state machine waits for its patience and no longer, and the next transaction would wait
  /// behind an endpoint that says nothing.
  void limit_to(std::chrono::milliseconds patience) {
    patience_ = patience;
    client_.limit_to(patience);
  }

  // ---- requests that block, from any thread ----
  // The requests of etcd_client, which throw what it throws.

  [[nodiscard]] std::shared_ptr<const etcd_view> read_view() { return blocking()->read_view(); }
  /// To be called before the first transaction is submitted: each transaction compares the secret.
  [[nodiscard]] domain_secret secret();
  [[nodiscard]] etcd_status ping() { return blocking()->ping(); }
  [[nodiscard]] bool has_authentication() { return blocking()->has_authentication(); }
  [[nodiscard]] std::optional<etcd_note> get(const std::string& note) {
    return blocking()->get(note);
  }
  [[nodiscard]] std::optional<revision> put_if(const std::string& note, revision changed,
                                               const std::string& text) {
    return blocking()->put_if(note, changed, text);
  }

 private:
  static constexpr std::size_t most_waiting = 8;

  /// The client for requests that block. One thread uses it at a time.
  struct borrowed {
    std::unique_lock<std::mutex> guard;
    etcd_client& client;
    [[nodiscard]] etcd_client* operator->() const { return &client; }
  };
  [[nodiscard]] borrowed blocking() {
    return {std::unique_lock(blocking_mutex_), blocking_client_};
  }

  void run();
  void carry_out(const submitted& what);
  [[nodiscard]] std::optional<etcd_answer> answer_to(const submitted& what);
  void has_failed(const std::string& why);

  etcd_store_options options_;
  etcd_events events_;
  etcd_client client_;  // of the thread
  std::chrono::milliseconds patience_{0};
  bool is_in_trouble_ = false;

  std::mutex blocking_mutex_;  // of the next one
  etcd_client blocking_client_;

  std::mutex mutex_;  // of the next three
  std::condition_variable has_work_;
  std::deque<submitted> waiting_;
  bool is_over_ = false;

  // The last members: their threads use the others.
  etcd_watch watch_;
  std::thread thread_;
};

}  // namespace lockflight::cluster
