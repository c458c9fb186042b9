// A lock and the check of it: every acquire and release goes through the run's own witness of
// mutual exclusion, and is marked in the trace.
//
// Always inlined: the benchmark's overhead must be the same around every lock, however the compiler
// compiles the lock.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/workload/results.hpp"
#include "lockflight/fabric/tracing.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::bench {

/// Whether a lock is a lock: the pseudo lock says that it excludes no participant, and has no
/// latency.
template <class Lock>
constexpr bool excludes = !requires { typename Lock::excludes_nobody; };

/// Whether a holder of the lock excludes holders of the other kind, so that a witness can check it.
template <class Lock>
constexpr bool is_witnessed = excludes<Lock> && !lock::defers<Lock>;

/// Counts handoffs and violations of one rank, whatever the lock.
template <rma::port Port>
class checker {
 public:
  checker(rma::participant<Port>& me, rank_result& mine) : port_(me.port()), mine_(mine) {
    if (me.machine().ranks() > most_looked_up) return;
    for (rma::rank_t r = 0; r < me.machine().ranks(); ++r)
      common_level_.push_back(static_cast<std::uint8_t>(me.machine().common_level(me.rank(), r)));
  }

  [[nodiscard, gnu::always_inline]] witness::entry enter(witness& seen, bool shared) {
    const witness::entry at = shared ? seen.enter_shared() : seen.enter_exclusive(port_.rank());
    if (at.violated) [[unlikely]]
      ++mine_.violations;
    if (at.before >= 0 && at.before != port_.rank()) {
      ++mine_.handoffs[static_cast<std::size_t>(common_level(at.before)) - 1];
    }
    return at;
  }

  [[gnu::always_inline]] void leave(witness& seen, bool shared, const witness::entry& at) {
    const bool violated = shared ? seen.leave_shared(at) : seen.leave_exclusive(port_.rank(), at);
    if (violated) [[unlikely]]
      ++mine_.violations;
  }

  [[gnu::always_inline]] void mark(fabric::trace_kind kind) {
    if constexpr (requires { port_.mark(kind); }) port_.mark(kind);
  }

 private:
  // A table for each rank is small on a real machine, and too large for a million simulated ranks.
  static constexpr int most_looked_up = 4096;

  [[nodiscard, gnu::always_inline]] int common_level(rma::rank_t other) const {
    return common_level_.empty() ? port_.machine().common_level(port_.rank(), other)
                                 : common_level_[static_cast<std::size_t>(other)];
  }

  Port& port_;
  rank_result& mine_;
  std::vector<std::uint8_t> common_level_;  // with each rank; or empty
};

/// One handle; cheap but for the lock's own.
template <class Lock, rma::port Port>
class measured_lock {
 public:
  template <class... Arguments>
  measured_lock(checker<Port>& check, witness& seen, Arguments&&... lock)
      : check_(check), seen_(seen), lock_(std::forward<Arguments>(lock)...) {}

  [[nodiscard, gnu::always_inline]] witness::entry acquire(bool write) {
    return enter(take(write));
  }

  [[gnu::always_inline]] void release(bool write, const witness::entry& at) {
    const bool shared = lock::shared<Lock> && !write;
    leave(shared, at);
    give(shared);
  }

  /// The accesses of critical sections: through the lock if it defers, else through the port.
  [[gnu::always_inline]] void put(Port& port, rma::plain_cell to, rma::word value) {
    if constexpr (lock::defers<Lock>)
      lock_.put(to, value);
    else
      rma::put_now(port, to, value);
  }
  [[gnu::always_inline]] void get(Port& port, rma::plain_cell from, rma::word& into) {
    if constexpr (lock::defers<Lock>)
      lock_.get(from, into);
    else
      into = rma::get_now(port, from);
  }

  // The halves of both, for callers that time them separately.

  // Every operation of a mutex is exclusive, also a reader's. Returns whether the lock is shared.
  [[gnu::always_inline]] bool take(bool write) {
    if constexpr (lock::shared<Lock>) {
      if (!write) {
        check_.mark(fabric::trace_kind::acquire_shared);
        lock_.lock_shared();
        check_.mark(fabric::trace_kind::acquired);
        return true;
      }
    }
    check_.mark(fabric::trace_kind::acquire);
    lock_.lock();
    check_.mark(fabric::trace_kind::acquired);
    return false;
  }

  [[gnu::always_inline]] void give(bool shared) {
    check_.mark(fabric::trace_kind::release);
    if constexpr (lock::shared<Lock>)
      shared ? lock_.unlock_shared() : lock_.unlock();
    else
      lock_.unlock();
    check_.mark(fabric::trace_kind::released);
  }

  [[nodiscard, gnu::always_inline]] witness::entry enter(bool shared) {
    if constexpr (!is_witnessed<Lock>) return {};
    return check_.enter(seen_, shared);
  }

  [[gnu::always_inline]] void leave(bool shared, const witness::entry& at) {
    if constexpr (!is_witnessed<Lock>) return;
    check_.leave(seen_, shared, at);
  }

 private:
  checker<Port>& check_;
  witness& seen_;
  Lock lock_;
};

}  // namespace lockflight::bench
