// A lock and the check of it: every acquire and release goes through the run's own witness of
// mutual exclusion, and is marked in the trace.
//
// Always inlined: the benchmark's overhead must be the same around every lock, however the compiler
// compiles the lock.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <vector>

#include "lab/bench/port/any_port.hpp"
#include "lab/bench/workload/far_witness.hpp"
#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/results.hpp"
#include "lockflight/fabric/tracing.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::bench {

/// True if a lock excludes participants. The pseudo lock does not, and has no latency.
template <class Lock>
constexpr bool excludes = !requires { typename Lock::excludes_nobody; };

/// True if a holder of the lock excludes holders of the other kind, so that a witness can check it.
template <class Lock>
constexpr bool is_witnessed = excludes<Lock> && !lock::defers<Lock>;

/// Charges the time that a library takes for a call, if the time is virtual.
template <rma::port Port>
[[gnu::always_inline]] inline void library_takes(Port& port, sim::library_call what) {
  if constexpr (requires { port.call(what); }) port.call(what);
}

/// Counts handoffs and violations of one rank, whatever the lock. The witness lies in memory, or at
/// rank 0 if the plan says so.
template <rma::port Port>
class checker {
 public:
  checker(rma::participant<Port>& me, const run_plan& plan, const run_results& results)
      : port_(me.port()), results_(results), mine_(results.of(me.rank())) {
    if constexpr (may_be_far)
      if (plan.far_witness) far_.emplace(me, plan.locks);
    if (me.machine().ranks() > most_looked_up) return;
    for (rma::rank_t r = 0; r < me.machine().ranks(); ++r)
      common_level_.push_back(static_cast<std::uint8_t>(me.machine().common_level(me.rank(), r)));
  }

  /// The witness in memory of one of the plan's locks.
  [[nodiscard]] witness& seen(std::uint32_t lock) const { return results_.seen(lock); }

  [[nodiscard, gnu::always_inline]] witness::entry enter(witness& seen, std::uint32_t lock,
                                                         bool shared) {
    const witness::entry at = entry_at(seen, lock, shared);
    if (at.violated) [[unlikely]]
      ++mine_.violations;
    if (at.before >= 0 && at.before != port_.rank()) {
      ++mine_.handoffs[static_cast<std::size_t>(common_level(at.before)) - 1];
    }
    return at;
  }

  [[gnu::always_inline]] void leave(witness& seen, std::uint32_t lock, bool shared,
                                    const witness::entry& at) {
    if (is_broken_at(seen, lock, shared, at)) [[unlikely]]
      ++mine_.violations;
  }

  /// Called when this rank acquires no lock any more, before the barrier at the end.
  void report() {
    if (far_) far_->report();
  }
  /// Called after that barrier.
  void settle() {
    if (far_ && port_.rank() == 0) mine_.violations += far_->lost_updates();
  }

  [[gnu::always_inline]] void mark(fabric::trace_kind kind) {
    if constexpr (requires { port_.mark(kind); }) port_.mark(kind);
  }
  [[gnu::always_inline]] void call(sim::library_call what) { library_takes(port_, what); }

 private:
  // A table for each rank is small on a real machine, and too large for a million simulated ranks.
  static constexpr int most_looked_up = 4096;

  // Shared memory, whose loops are compiled by themselves, has a witness that sees all ranks.
  static constexpr bool may_be_far = std::derived_from<Port, any_port>;

  [[nodiscard, gnu::always_inline]] witness::entry entry_at(witness& seen, std::uint32_t lock,
                                                            bool shared) {
    if constexpr (may_be_far)
      if (far_) return shared ? far_->enter_shared(lock) : far_->enter_exclusive(lock);
    return shared ? seen.enter_shared() : seen.enter_exclusive(port_.rank());
  }

  [[nodiscard, gnu::always_inline]] bool is_broken_at(witness& seen, std::uint32_t lock,
                                                      bool shared, const witness::entry& at) {
    if constexpr (may_be_far)
      if (far_) return shared ? far_->leave_shared(lock, at) : far_->leave_exclusive(lock, at);
    return shared ? seen.leave_shared(at) : seen.leave_exclusive(port_.rank(), at);
  }

  [[nodiscard, gnu::always_inline]] int common_level(rma::rank_t other) const {
    return common_level_.empty() ? port_.machine().common_level(port_.rank(), other)
                                 : common_level_[static_cast<std::size_t>(other)];
  }

  Port& port_;
  const run_results& results_;
  rank_result& mine_;
  std::optional<far_witness<Port>> far_;
  std::vector<std::uint8_t> common_level_;  // with each rank; or empty
};

/// A handle of the plan's lock number `which`; cheap but for the lock's own handle.
template <class Lock, rma::port Port>
class measured_lock {
 public:
  template <class... Arguments>
  measured_lock(checker<Port>& check, std::uint32_t which, Arguments&&... lock)
      : check_(check),
        seen_(check.seen(which)),
        which_(which),
        lock_(std::forward<Arguments>(lock)...) {}

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
    check_.call(sim::library_call::access);
    if constexpr (lock::defers<Lock>)
      lock_.put(to, value);
    else
      rma::put_now(port, to, value);
  }
  [[gnu::always_inline]] void get(Port& port, rma::plain_cell from, rma::word& into) {
    check_.call(sim::library_call::access);
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
        check_.call(sim::library_call::acquire);
        lock_.lock_shared();
        check_.mark(fabric::trace_kind::acquired);
        return true;
      }
    }
    check_.mark(fabric::trace_kind::acquire);
    check_.call(sim::library_call::acquire);
    lock_.lock();
    check_.mark(fabric::trace_kind::acquired);
    return false;
  }

  [[gnu::always_inline]] void give(bool shared) {
    check_.mark(fabric::trace_kind::release);
    check_.call(sim::library_call::release);
    if constexpr (lock::shared<Lock>)
      shared ? lock_.unlock_shared() : lock_.unlock();
    else
      lock_.unlock();
    check_.mark(fabric::trace_kind::released);
  }

  [[nodiscard, gnu::always_inline]] witness::entry enter(bool shared) {
    if constexpr (!is_witnessed<Lock>) return {};
    return check_.enter(seen_, which_, shared);
  }

  [[gnu::always_inline]] void leave(bool shared, const witness::entry& at) {
    if constexpr (!is_witnessed<Lock>) return;
    check_.leave(seen_, which_, shared, at);
  }

 private:
  checker<Port>& check_;
  witness& seen_;
  std::uint32_t which_;
  Lock lock_;
};

}  // namespace lockflight::bench
