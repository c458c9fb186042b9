// What one rank does in a run: operations in a loop, each timed and checked.
//
// The loop must not hide the locks' differences: a reader of rma-rw takes some 15 ns, a reading of
// the clock 7. So operations whose critical section is empty, or one access, are timed from release
// to release, with one reading each; what is compared is the throughput, and the latency includes
// the choice of a role, the check and the bookkeeping, some 5 ns, and sob's access; the longest
// wait is the longest of these. `lb` is there for latencies: it brackets acquire and release with
// ordered readings. wcsb and dht, whose critical sections are long, bracket them with plain ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "bench/plan.hpp"
#include "bench/random.hpp"
#include "bench/results.hpp"
#include "lockflight/hash_table.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/rma/barrier.hpp"

namespace lockflight::bench {

/// Whether a lock is one: what says of itself that it excludes nobody is not checked, and has no
/// latency.
template <class Lock>
constexpr bool excludes = !requires { typename Lock::excludes_nobody; };

/// Whether acquire and release are timed apart from what lies between them.
constexpr bool times_both_halves(workload w) {
  return w == workload::lb || w == workload::wcsb || w == workload::dht;
}

/// dht: keys are drawn from so many, and the heap holds them all even if they all collide.
constexpr std::uint64_t dht_keys = 1u << 17;
constexpr hash_table_shape dht_shape{.table = 1u << 16, .heap = 1u << 17};
constexpr std::uint32_t dht_words = 1u << 19;

/// `Clock` is what the fabric times with: now, now_ordered, busy_until, ticks.
template <class Lock, rma::port Port, class Clock>
class rank_run {
 public:
  rank_run(rma::participant<Port>& me, const run_plan& plan, const typename Lock::parameters& set,
           const Clock& clock, const run_results& results)
      : port_(me.port()),
        plan_(plan),
        roles_(plan),
        clock_(clock),
        results_(results),
        mine_(results.of(me.rank())),
        seen_(results.common().seen),
        barrier_(me),
        lock_(me, set, home),
        data_(me.cells().template take<rma::plain_cell>(1).at(home)),
        random_(plan.seed, static_cast<std::uint64_t>(me.rank())),
        write_below_(static_cast<std::uint64_t>(roles_.writes(me.rank()) * (1ull << 53))) {
    if (plan.what == workload::dht) {
      table_.emplace(me, dht_shape);
      inserted_.resize(dht_keys);
    }
    for (rma::rank_t r = 0; r < me.machine().ranks(); ++r)
      common_level_.push_back(static_cast<std::uint8_t>(me.machine().common_level(me.rank(), r)));
  }

  void run() {
    start();
    if (roles_.is_active(port_.rank())) {
      switch (plan_.what) {
        case workload::lb:
          loop<workload::lb>();
          break;
        case workload::ecsb:
          loop<workload::ecsb>();
          break;
        case workload::sob:
          loop<workload::sob>();
          break;
        case workload::wcsb:
          loop<workload::wcsb>();
          break;
        case workload::warb:
          loop<workload::warb>();
          break;
        case workload::dht:
          loop<workload::dht>();
          break;
      }
    }
    mine_.progress.store(rank_result::all_done, std::memory_order_relaxed);
    barrier_.arrive_and_wait();
    verify();
  }

 private:
  static constexpr rma::rank_t home = 0;
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

  // ---- the phases: warm-up, then the measured part ----

  // The first barrier waits for ranks that are still being started, the second gives them one time
  // to count from.
  void start() {
    barrier_.arrive_and_wait();
    if (port_.rank() == results_.leader()) results_.common().started = clock_.now();
    barrier_.arrive_and_wait();
    started_ = results_.common().started;
    publish_every_ = clock_.ticks(0.05);
    if (plan_.ops > 0) {
      measured_ops_ = roles_.share(port_.rank(), plan_.ops);
      left_ = warm_up_of(measured_ops_);
    } else {
      phase_end_ = started_ + clock_.ticks(warm_up_of(plan_.seconds));
    }
  }

  template <workload W>
  [[gnu::noinline]] void loop() {
    std::uint64_t last = clock_.now();
    if (left_ > 0) event_ = std::min(phase_end_, last + publish_every_);
    // Without a warm-up there is nothing to measure either: more ranks than operations.
    while (left_ > 0) {
      const bool write = (random_.next() >> 11) < write_below_;
      if constexpr (times_both_halves(W) && excludes<Lock>)
        last = timed_by_halves<W>(write);
      else
        last = timed_from(last, write, [&] { critical_section<W>(write); });
      if constexpr (W == workload::warb) last = clock_.busy_until(last + one_to_four_us());
      if ((--left_ == 0 || last >= event_) && !turn(last)) break;
    }
    mine_.ended = last;
    mine_.operations = counter_of(port_).counts();
  }

  // A phase may be over, or it is time to be seen from outside. False when all is done. What this
  // takes belongs to no operation: `last` moves on.
  bool turn(std::uint64_t& last) {
    bool over = left_ == 0 || last >= phase_end_;
    if (over && !measuring_) {
      begin_measuring(last);
      over = left_ == 0 || last >= phase_end_;
    }
    if (over) return false;
    publish(last);
    last = clock_.now();
    event_ = std::min(phase_end_, last + publish_every_);
    return true;
  }

  void begin_measuring(std::uint64_t& last) {
    measuring_ = true;
    mine_.read.clear();
    mine_.write.clear();
    mine_.longest_wait = 0;
    mine_.handoffs = {};
    mine_.trace_used = 0;
    counter_of(port_).reset_counts();
    last = clock_.now();
    mine_.begun = last;
    if (plan_.ops > 0) {
      left_ = measured_ops_;
    } else {
      mine_.begun = phase_end_;
      phase_end_ += clock_.ticks(plan_.seconds);
    }
  }

  void publish(std::uint64_t now) {
    double done = 0;
    if (plan_.ops > 0) {
      const auto warm_up = static_cast<double>(warm_up_of(measured_ops_));
      const auto all = warm_up + static_cast<double>(measured_ops_);
      const double gone = measuring_ ? all : warm_up;
      done = (gone - static_cast<double>(left_)) / all;
    } else {
      const auto all = clock_.ticks(plan_.seconds + warm_up_of(plan_.seconds));
      done = static_cast<double>(now - started_) / static_cast<double>(all);
    }
    const double part = std::clamp(done, 0.0, 1.0) * rank_result::all_done;
    mine_.progress.store(static_cast<std::uint32_t>(part), std::memory_order_relaxed);
    mine_.beats.fetch_add(1, std::memory_order_relaxed);
  }

  // ---- one operation ----
  // Always inlined: what the benchmark adds must be the same around every lock, whatever the
  // compiler makes of the lock.

  template <class Body>
  [[gnu::always_inline]] std::uint64_t timed_from(std::uint64_t last, bool write, Body body) {
    const witness::entry at = acquire(write);
    body();
    release(write, at);
    const std::uint64_t now = clock_.now();
    record(write, now - last, now - last);
    return now;
  }

  template <workload W>
  [[gnu::always_inline]] std::uint64_t timed_by_halves(bool write) {
    const std::uint64_t asked = reading<W>();
    const bool shared = take(write);
    const std::uint64_t got = reading<W>();
    const witness::entry at = enter(shared);
    critical_section<W>(write);
    leave(shared, at);
    const std::uint64_t gave = reading<W>();
    give(shared);
    const std::uint64_t done = reading<W>();
    record(write, (got - asked) + (done - gave), got - asked);
    return done;
  }

  template <workload W>
  [[nodiscard]] std::uint64_t reading() const {
    return W == workload::lb ? clock_.now_ordered() : clock_.now();
  }

  [[gnu::always_inline]] void record(bool write, std::uint64_t latency, std::uint64_t wait) {
    (write ? mine_.write : mine_.read).record(latency);
    mine_.longest_wait = std::max(mine_.longest_wait, wait);
  }

  [[nodiscard, gnu::always_inline]] witness::entry acquire(bool write) {
    return enter(take(write));
  }

  [[gnu::always_inline]] void release(bool write, const witness::entry& at) {
    const bool shared = lock::shared<Lock> && !write;
    leave(shared, at);
    give(shared);
  }

  // Every operation of a mutex is exclusive, whatever it wants. Returns whether the lock is shared.
  [[gnu::always_inline]] bool take(bool write) {
    if constexpr (lock::shared<Lock>) {
      if (!write) {
        mark(fabric::trace_kind::acquire_shared);
        lock_.lock_shared();
        mark(fabric::trace_kind::acquired);
        return true;
      }
    }
    mark(fabric::trace_kind::acquire);
    lock_.lock();
    mark(fabric::trace_kind::acquired);
    return false;
  }

  [[gnu::always_inline]] void give(bool shared) {
    mark(fabric::trace_kind::release);
    if constexpr (lock::shared<Lock>)
      shared ? lock_.unlock_shared() : lock_.unlock();
    else
      lock_.unlock();
    mark(fabric::trace_kind::released);
  }

  // ---- the check, inside the critical section ----

  [[nodiscard, gnu::always_inline]] witness::entry enter(bool shared) {
    if constexpr (!excludes<Lock>) return {};
    const witness::entry at = shared ? seen_.enter_shared() : seen_.enter_exclusive(port_.rank());
    mine_.violations += at.violated ? 1 : 0;
    if (at.before >= 0 && at.before != port_.rank()) {
      const auto level = common_level_[static_cast<std::size_t>(at.before)];
      ++mine_.handoffs[level - 1u];
    }
    return at;
  }

  [[gnu::always_inline]] void leave(bool shared, const witness::entry& at) {
    if constexpr (!excludes<Lock>) return;
    const bool violated = shared ? seen_.leave_shared(at) : seen_.leave_exclusive(port_.rank(), at);
    mine_.violations += violated ? 1 : 0;
  }

  // ---- the workloads' critical sections ----

  template <workload W>
  [[gnu::always_inline]] void critical_section(bool write) {
    if constexpr (W == workload::sob) {
      write ? rma::put_now(port_, data_, random_.next()) : look_at_data();
    } else if constexpr (W == workload::wcsb) {
      write ? increment() : look_at_data();
      clock_.busy_until(clock_.now() + one_to_four_us());
    } else if constexpr (W == workload::dht) {
      const std::uint64_t key = random_.below(dht_keys);
      if (write) {
        table_->insert_at(home, key);
        inserted_[key] = true;
      } else {
        found_ += table_->contains_at(home, key) ? 1 : 0;
      }
    }
  }

  void look_at_data() { found_ += rma::get_now(port_, data_); }

  // Not atomic: that is what the lock is for. verify() sees it if one was lost.
  void increment() {
    rma::put_now(port_, data_, rma::get_now(port_, data_) + 1);
    ++mine_.increments;
  }

  [[nodiscard]] std::uint64_t one_to_four_us() {
    return clock_.ticks(1e-6) + random_.below(clock_.ticks(3e-6));
  }

  // ---- after the run ----

  // What the critical sections did is there: no increment was lost, every inserted key is found.
  void verify() {
    if (plan_.what == workload::wcsb && port_.rank() == home && results_.whole()) {
      std::uint64_t expected = 0;
      for (const rank_result& r : results_.ranks()) expected += r.increments;
      const rma::word is = rma::get_now(port_, data_);
      mine_.violations += std::max(is, expected) - std::min(is, expected);
    }
    for (std::uint64_t key = 0; key < inserted_.size(); ++key)
      if (inserted_[key] && !table_->contains_at(home, key)) ++mine_.violations;
  }

  // ---- what decorators offer ----

  void mark(fabric::trace_kind kind) {
    if constexpr (requires { port_.mark(kind); }) port_.mark(kind);
  }

  template <class P>
  [[nodiscard]] static auto& counter_of(P& p) {
    if constexpr (requires { p.reset_counts(); })
      return p;
    else
      return counter_of(p.inner());
  }

  Port& port_;
  const run_plan& plan_;
  roles roles_;
  Clock clock_;
  const run_results& results_;
  rank_result& mine_;
  witness& seen_;
  rma::barrier<Port> barrier_;
  lock::created<Lock, Port> lock_;
  rma::plain_cell data_;  // sob: the word that is accessed; wcsb: the shared counter
  random random_;
  std::uint64_t write_below_;  // of 2^53
  std::optional<hash_table<Port>> table_;
  std::vector<bool> inserted_;              // dht: the keys that this rank inserted
  std::vector<std::uint8_t> common_level_;  // with each rank

  bool measuring_ = false;
  std::uint64_t started_ = 0;
  std::uint64_t measured_ops_ = 0;
  std::uint64_t left_ = unlimited;       // operations of this phase
  std::uint64_t phase_end_ = unlimited;  // tick
  std::uint64_t event_ = unlimited;      // tick at which to look up
  std::uint64_t publish_every_ = 0;
  std::uint64_t found_ = 0;  // what readers read goes somewhere
};

}  // namespace lockflight::bench
