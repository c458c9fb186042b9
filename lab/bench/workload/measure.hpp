// The work of one rank in a run: operations in a loop, each timed and checked.
//
// The loop must not hide the locks' differences: a reader of rma-rw takes some 15 ns, a reading of
// the clock 7. So operations whose critical section is empty, or one access, are timed from release
// to release, with one reading each; the throughput is compared, and the latency includes
// the choice of a role, the check and the bookkeeping, some 5 ns, and sob's access; the longest
// wait is the longest of these. Where even a reading is too much, one operation in several is timed
// (--sample), by itself, and the others are only counted. `lb` is there for latencies: it brackets
// acquire and release with ordered readings. wcsb and dht, whose critical sections are long,
// bracket them with plain ones.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "lab/bench/port/any_port.hpp"
#include "lab/bench/workload/measured_lock.hpp"
#include "lab/bench/workload/phases.hpp"
#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/random.hpp"
#include "lab/bench/workload/results.hpp"
#include "lockflight/hash_table.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/rma/barrier.hpp"

namespace lockflight::bench {

/// True if acquire and release are timed without the critical section between them.
constexpr bool times_both_halves(workload w) {
  return w == workload::lb || w == workload::wcsb || w == workload::dht || has_many_locks(w);
}

/// True if the readings of the clock are ordered with the operations between them.
constexpr bool times_in_order(workload w) { return w == workload::lb || w == workload::primitive; }

/// dht: the number of keys; the heap holds them all even if they all collide.
constexpr std::uint64_t dht_keys = 1u << 17;
constexpr hash_table_shape dht_shape{.table = 1u << 16, .heap = 1u << 17};
constexpr std::uint32_t dht_words = 1u << 19;

/// `Clock` is the fabric's clock: now, now_ordered, busy_until, ticks.
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
        barrier_(me),
        phases_(port_, plan, clock, results),
        check_(me, plan, results),
        lock_(check_, 0, me, set, home),
        data_(me.cells().template take<rma::plain_cell>(1).at(home)),
        write_below_(static_cast<std::uint64_t>(roles_.writes(me.rank()) * (1ull << 53))) {
    if (plan.what == workload::dht) {
      table_.emplace(me, dht_shape);
      inserted_.resize(dht_keys);
    }
  }

  void run() {
    phases_.start(barrier_, roles_);
    if (roles_.is_active(port_.rank())) {
      if constexpr (one_loop_for_all)
        loop(plan_.what);
      else
        loop_of_its_own();
    }
    phases_.done();
    check_.report();
    barrier_.arrive_and_wait();
    check_.settle();
    verify();
  }

 private:
  static constexpr rma::rank_t home = 0;

  // A single loop serves all workloads if an operation takes far longer than a test of the
  // workload: it compiles in a fraction of the time.
  static constexpr bool one_loop_for_all = std::derived_from<Port, any_port>;

  template <workload W>
  using always = std::integral_constant<workload, W>;

  void loop_of_its_own() {
    switch (plan_.what) {
      case workload::lb:
        return loop(always<workload::lb>{});
      case workload::ecsb:
        return loop(always<workload::ecsb>{});
      case workload::sob:
        return loop(always<workload::sob>{});
      default:
        return loop(plan_.what);
    }
  }

  /// `What` is a workload, or one that is known when this is compiled.
  template <class What>
  [[gnu::noinline]] void loop(What what) {
    // Local variables and not members, so that they are in registers: each number is made from the
    // one before, which through memory would take as long as the shortest operations.
    random rolls(plan_.seed, static_cast<std::uint64_t>(port_.rank()));
    std::uint64_t until_timed =
        plan_.sample;  // operations until the next timed one, that one included

    std::uint64_t last = clock_.now();
    for (bool more = phases_.begin(last); more; more = phases_.next(last)) {
      const bool write = (rolls.next() >> 11) < write_below_;
      const auto body = [&] { critical_section(what, write, rolls); };
      if (times_both_halves(what) && excludes<Lock>) {
        last = timed_by_halves(what, write, rolls);
      } else if (--until_timed == 0) {
        until_timed = plan_.sample;
        last = timed_from(until_timed == 1 ? last : clock_.now(), write, body);
      } else if (write) {
        untimed(true, body);
      } else {
        untimed(false, body);  // one branch by the role, where the compiler would make three
      }
      if (what == workload::warb) last = clock_.busy_until(last + one_to_four_us(rolls));
    }
    phases_.end(last);
  }

  // ---- one operation ----

  template <class Body>
  [[gnu::always_inline]] std::uint64_t timed_from(std::uint64_t last, bool write, Body body) {
    const witness::entry at = lock_.acquire(write);
    body();
    lock_.release(write, at);
    const std::uint64_t now = clock_.now();
    mine_.record(write, now - last, now - last);
    return now;
  }

  template <class Body>
  [[gnu::always_inline]] void untimed(bool write, Body body) {
    const witness::entry at = lock_.acquire(write);
    body();
    lock_.release(write, at);
    ++(write ? mine_.untimed_writes : mine_.untimed_reads);
  }

  template <class What>
  [[gnu::always_inline]] std::uint64_t timed_by_halves(What what, bool write, random& rolls) {
    const std::uint64_t asked = reading(what);
    const bool shared = lock_.take(write);
    const std::uint64_t got = reading(what);
    const witness::entry at = lock_.enter(shared);
    critical_section(what, write, rolls);
    lock_.leave(shared, at);
    const std::uint64_t gave = reading(what);
    lock_.give(shared);
    const std::uint64_t done = reading(what);
    mine_.record(write, (got - asked) + (done - gave), got - asked);
    return done;
  }

  template <class What>
  [[nodiscard, gnu::always_inline]] std::uint64_t reading(What what) const {
    return times_in_order(what) ? clock_.now_ordered() : clock_.now();
  }

  // ---- the workloads' critical sections ----

  template <class What>
  [[gnu::always_inline]] void critical_section(What what, bool write, random& rolls) {
    if (what == workload::sob) {
      write ? lock_.put(port_, data_, rolls.next()) : lock_.get(port_, data_, looked_at_);
    } else if (what == workload::wcsb) {
      write ? increment() : look_at_data();
      clock_.busy_until(clock_.now() + one_to_four_us(rolls));
    } else if (what == workload::dht) {
      const std::uint64_t key = rolls.below(dht_keys);
      if (write) {
        table_->insert_at(home, key);
        inserted_[key] = true;
      } else {
        found_ += table_->contains_at(home, key) ? 1 : 0;
      }
    }
  }

  void look_at_data() { found_ += counted(); }

  // Not atomic, since the lock guards it. verify() notices a lost increment.
  void increment() {
    const rma::word next = counted() + 1;
    library_takes(port_, sim::library_call::access);
    rma::put_now(port_, data_, next);
    ++mine_.increments;
  }

  [[nodiscard]] rma::word counted() {
    library_takes(port_, sim::library_call::access);
    return rma::get_now(port_, data_);
  }

  [[nodiscard]] std::uint64_t one_to_four_us(random& rolls) const {
    return clock_.ticks(1e-6) + rolls.below(clock_.ticks(3e-6));
  }

  // ---- after the run ----

  // The effects of the critical sections are there: no increment was lost, every inserted key is
  // found.
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

  Port& port_;
  const run_plan& plan_;
  roles roles_;
  Clock clock_;
  const run_results& results_;
  rank_result& mine_;
  rma::barrier<Port> barrier_;
  phases<Port, Clock> phases_;
  checker<Port> check_;
  measured_lock<lock::created<Lock, Port>, Port> lock_;
  rma::plain_cell data_;       // sob: the word that is accessed; wcsb: the shared counter
  std::uint64_t write_below_;  // of 2^53
  std::optional<hash_table<Port>> table_;
  std::vector<bool> inserted_;  // dht: the keys that this rank inserted
  std::uint64_t found_ = 0;     // where readers' results go
  rma::word looked_at_ = 0;     // sob: the same
};

}  // namespace lockflight::bench
