// The UCX side of a process: a worker, and an endpoint for each rank that it has talked to.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fabric/ucx/calls.hpp"

namespace lockflight::ucx::detail {

/// A lock that two threads of a process take for each step of the worker: the rank's own, and the
/// one that makes progress while that one computes.
class step_lock {
 public:
  void lock() {
    while (!try_lock()) pause();
  }
  // Acquire: this thread sees the worker as the other one has left it.
  [[nodiscard]] bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
  // Release: the next holder sees the worker as this thread leaves it.
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static void pause();
  std::atomic<bool> taken_ = false;
};

/// Sent ahead of the three words of a message.
struct envelope {
  std::int64_t run = 0;
  std::int64_t from = 0;
  std::array<rma::word, 3> body{};
};

class worker {
 public:
  /// `wakes`: there will be a progress thread.
  explicit worker(bool wakes);
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  /// By which other processes reach this one.
  [[nodiscard]] std::string address() const;
  /// The addresses of all ranks, by rank; before the first endpoint() is made.
  void know(std::vector<std::string> addresses) {
    addresses_ = std::move(addresses);
    endpoints_.resize(addresses_.size(), nullptr);
    faults_.resize(addresses_.size());
  }

  /// Made at the first call. It stays until close_all().
  [[nodiscard]] ucp_ep_h endpoint(rma::rank_t to);
  [[nodiscard]] bool has_endpoint(rma::rank_t to) const {
    return endpoints_[static_cast<std::size_t>(to)] != nullptr;
  }
  [[nodiscard]] std::size_t endpoints() const;

  /// One step; whether anything happened.
  bool progress();
  /// Ends all connections: no rank may use them any more. `others` lets the other ranks end theirs.
  void close_all();
  /// From here on the end of a connection is no fault.
  void expect_ends() { ends_expected_ = true; }
  /// UCX's objects stay as they are: after a failure, to release them could wait for a lost rank.
  void leave() { left_ = true; }

  /// What has come, the oldest first.
  [[nodiscard]] std::deque<envelope>& inbox() { return inbox_; }
  /// What UCX has said of a rank's connection that has failed; UCS_OK if none has.
  [[nodiscard]] ucs_status_t fault_of(rma::rank_t of) const {
    return faults_[static_cast<std::size_t>(of)].status;
  }

  [[nodiscard]] ucp_context_h context() const { return context_; }
  [[nodiscard]] ucp_worker_h handle() const { return worker_; }
  /// Whether the CPU does the atomics: a transport's, or the target's software.
  [[nodiscard]] bool atomics_by_cpu() const { return by_cpu_; }
  /// Set while a second thread may use the worker.
  void share_with_thread(bool is_so) { shared_ = is_so; }
  [[nodiscard]] step_lock& steps() { return steps_; }

  /// Every call of UCX that touches the worker.
  template <class F>
  auto step(F f) {
    if (!shared_) return f();
    // Relaxed: the thread only compares it with what it was.
    made_.store(made_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const std::lock_guard hold(steps_);
    return f();
  }
  /// By the rank, while it shares the worker.
  [[nodiscard]] std::uint64_t steps_made() const { return made_.load(std::memory_order_relaxed); }

 private:
  struct fault {
    worker* of = nullptr;
    ucs_status_t status = UCS_OK;
  };
  static void on_fault(void* which, ucp_ep_h, ucs_status_t status);
  static ucs_status_t on_message(void* its, const void* header, std::size_t length, void*,
                                 std::size_t, const ucp_am_recv_param_t*);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  bool by_cpu_ = true;
  bool shared_ = false;
  bool ends_expected_ = false;
  bool left_ = false;
  step_lock steps_;
  std::atomic<std::uint64_t> made_ = 0;
  std::vector<std::string> addresses_;
  std::vector<ucp_ep_h> endpoints_;  // [rank]
  std::vector<fault> faults_;        // [rank]
  std::deque<envelope> inbox_;
};

/// The number of UCX's active message that carries an envelope.
constexpr unsigned message_id = 1;

}  // namespace lockflight::ucx::detail
