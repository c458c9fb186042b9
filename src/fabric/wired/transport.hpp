// The part of a network's library in a process of a wired launch. UCX and libfabric each implement
// it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lockflight/fabric/networked.hpp"

namespace lockflight::wired::detail {

class segment;
struct world;

/// A lock that two threads of a process take for each step of the transport: the rank's own thread,
/// and the thread that makes progress while the rank computes.
class step_lock {
 public:
  void lock() {
    while (!try_lock()) pause();
  }
  // Acquire: this thread sees the transport as the other one has left it.
  [[nodiscard]] bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
  // Release: the next holder sees the transport as this thread leaves it.
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static void pause();
  std::atomic<bool> taken_ = false;
};

/// A message as it travels. Links of different runs use one transport, one after the other.
struct envelope {
  std::int64_t run = 0;
  std::int64_t from = 0;
  std::array<rma::word, 3> body{};
};

/// Memory that other processes reach; destroying it revokes their access.
class exposure {
 public:
  virtual ~exposure() = default;
  /// The key that another process needs to reach the memory, as a text.
  [[nodiscard]] virtual std::string key() const = 0;
};

/// The description of a transport for `lockflight doctor`.
struct description {
  std::string library;     ///< the library's name and version
  std::string transports;  ///< the transports that carry the operations
  std::string atomics;     ///< the CPU or the card, which does the atomics
};

class transport {
 public:
  virtual ~transport() = default;
  transport(const transport&) = delete;
  transport& operator=(const transport&) = delete;

  [[nodiscard]] virtual description describe() const = 0;
  /// How the transport carries out operations, in words. Ranks whose words differ cannot
  /// communicate.
  [[nodiscard]] virtual std::string protocol() const = 0;
  /// True if atomic operations are atomic with the CPU instructions of the target's node.
  [[nodiscard]] virtual bool atomics_by_cpu() const = 0;
  /// True if the software of the target carries out operations on its cells.
  [[nodiscard]] virtual bool target_takes_part() const = 0;

  /// The address by which other processes reach this one. The processes exchange their addresses
  /// first.
  [[nodiscard]] virtual std::string address() const = 0;
  /// Sets the addresses of all ranks, by rank; `rank` is this one. Throws `unavailable`, on all
  /// ranks alike, if the transport cannot reach ranks of other hosts and there are some.
  virtual void set_addresses(std::vector<std::string> addresses, int rank, bool one_host) = 0;

  /// Lets other processes operate on a rank's cells.
  [[nodiscard]] virtual std::unique_ptr<exposure> expose(std::byte* cells, std::size_t bytes) = 0;
  /// The side of a rank's port. `patient`: with more ranks than cores, waiting yields at once.
  [[nodiscard]] virtual std::unique_ptr<fabric::network> connect(world& in, const segment& cells,
                                                                 bool patient) = 0;

  /// Makes one step. Returns whether anything happened. Called by the holder of step().
  virtual bool advance() = 0;
  /// A descriptor that is readable when there may be something to do; -1 if there is none.
  [[nodiscard]] virtual int events() = 0;
  /// After advance() has found nothing to do: for how long a thread may sleep on the descriptor, in
  /// milliseconds; 0 if it has to poll again. Called by the holder of step().
  [[nodiscard]] virtual int longest_sleep_ms() = 0;

  /// The number of other ranks to which this rank has connected itself.
  [[nodiscard]] virtual std::size_t connections() const = 0;
  /// Called when no rank uses the connections any more: all ranks end theirs.
  virtual void close_connections() {}

  // ---- what is common to all of them ----

  /// Why the transport does not work any more.
  struct fault {
    bool is_there = false;
    rma::rank_t rank = -1;  ///< that it does not reach any more; -1: it is broken itself
    std::string words;      ///< the library's
  };
  /// The fault that was found, after progress() has returned false.
  [[nodiscard]] const fault& found_fault() const { return fault_; }
  /// Called by the holder of step(). Only the first fault counts.
  void set_fault(rma::rank_t rank, std::string words) {
    if (!fault_.is_there) fault_ = {true, rank, std::move(words)};
  }
  /// The messages that have come, the oldest first.
  [[nodiscard]] std::deque<envelope>& inbox() { return inbox_; }

  /// Runs `f`. Every call of the library that touches the connections is made by this function.
  template <class F>
  decltype(auto) step(F f) {
    if (!shared_) return f();
    // Relaxed: the thread only compares it with what it was.
    made_.store(made_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const std::lock_guard hold(steps_);
    return f();
  }
  /// Makes one step for the rank. Returns false if there is a `fault`.
  bool progress() {
    return step([this] {
      advance();
      return !fault_.is_there;
    });
  }
  /// Set while a second thread may make steps.
  void share_with_thread(bool is_so) { shared_ = is_so; }
  [[nodiscard]] step_lock& steps() { return steps_; }
  /// The number of steps that the rank has made while it shares the transport.
  [[nodiscard]] std::uint64_t steps_made() const { return made_.load(std::memory_order_relaxed); }

 protected:
  transport() = default;

 private:
  fault fault_;
  bool shared_ = false;
  step_lock steps_;
  std::atomic<std::uint64_t> made_ = 0;
  std::deque<envelope> inbox_;
};

/// A library of which a launch can have a transport.
struct library {
  /// The variable of the environment that cuts hosts into nodes, for tests.
  const char* nodes_variable;
  /// The variables of which ranks may have different values by mistake.
  const char* variables;
  /// Throws std::invalid_argument on a bad value of them.
  std::function<void()> check_variables;
  /// `wakes`: there will be a thread that makes progress. Throws `unavailable`.
  std::function<std::unique_ptr<transport>(bool wakes)> open;
};

}  // namespace lockflight::wired::detail
