// Workloads in rounds. cascade: rank 0 holds the lock until all others wait for it, and is timed
// from its release until it has the lock once more. With a lock that is first come, first served
// all others have had it then; one that prefers ranks of its node returns sooner. dht-writer: when
// rank 0 has the lock, all others begin to acquire it, and rank 0 is timed until it has released
// the lock.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/bench/workload/measured_lock.hpp"
#include "lab/bench/workload/phases.hpp"
#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/results.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/rma/barrier.hpp"

namespace lockflight::bench {

template <class Lock, rma::port Port, class Clock>
class rounds_run {
 public:
  rounds_run(rma::participant<Port>& me, const run_plan& plan, const typename Lock::parameters& set,
             const Clock& clock, const run_results& results)
      : port_(me.port()),
        plan_(plan),
        clock_(clock),
        mine_(results.of(me.rank())),
        barrier_(me),
        phases_(port_, plan, clock, results),
        check_(me, plan, results),
        lock_(check_, 0, me, set, leader),
        coming_(
            me.cells()
                .template take<rma::plain_cell>(static_cast<std::uint32_t>(plan.machine.ranks()))
                .at(leader)),
        over_(me.cells().template take<rma::plain_cell>(1).at(leader)),
        data_(me.cells().template take<rma::plain_cell>(most_bytes / word_bytes).at(leader)),
        words_((plan.bytes + word_bytes - 1) / word_bytes),
        read_(words_) {}

  void run() {
    phases_.start(barrier_, roles(plan_));
    port_.rank() == leader ? lead() : follow();
    phases_.done();
    check_.report();
    barrier_.arrive_and_wait();
    check_.settle();
  }

 private:
  static constexpr rma::rank_t leader = 0;
  static constexpr std::uint32_t word_bytes = sizeof(rma::word);

  // Each operation of the leader is a round. The others learn at the barrier whether there is
  // another.
  void lead() {
    std::uint64_t last = clock_.now();
    std::uint64_t round = 0;
    for (bool more = phases_.begin(last);; more = phases_.next(last)) {
      rma::put_now(port_, over_, more ? 0 : 1);
      if (!more) break;
      if (plan_.what == workload::dht_writer) barrier_.arrive_and_wait();
      witness::entry at = lock_.acquire(true);
      ++round;
      barrier_.arrive_and_wait();
      if (plan_.what == workload::cascade) await_the_others(round);
      const std::uint64_t begun = clock_.now();
      if (plan_.what == workload::dht_writer) {
        write_data(round);
        lock_.release(true, at);
      } else {
        lock_.release(true, at);
        at = lock_.acquire(true);
      }
      last = clock_.now();
      mine_.record(true, last - begun, last - begun);
      if (plan_.what == workload::cascade) lock_.release(true, at);
      barrier_.arrive_and_wait();
    }
    phases_.end(last);
    barrier_.arrive_and_wait();
  }

  void follow() {
    for (std::uint64_t round = 1;; ++round) {
      barrier_.arrive_and_wait();
      if (rma::get_now(port_, over_) != 0) return;
      const bool write = plan_.what == workload::cascade;
      if (write)
        rma::put_now(port_, coming_ + static_cast<std::uint32_t>(port_.rank()), round);
      else
        barrier_.arrive_and_wait();  // the writer has the lock
      const witness::entry at = lock_.acquire(write);
      if (!write) read_data();
      lock_.release(write, at);
      barrier_.arrive_and_wait();
    }
  }

  // Waits until the others have announced that they come, and then for another moment, in which
  // they join the queue. The moment is longer where they share cores.
  void await_the_others(std::uint64_t round) {
    for (rma::rank_t r = 1; r < plan_.machine.ranks(); ++r)
      port_.await(coming_ + static_cast<std::uint32_t>(r),
                  [round](rma::word now) { return now == round; });
    port_.pause(clock_.a_moment_ns(plan_.machine.ranks()));
  }

  void write_data(std::uint64_t value) {
    library_takes(port_, sim::library_call::access);
    for (std::uint32_t i = 0; i < words_; ++i) port_.put(data_ + i, value);
    port_.flush(leader);
  }

  // All words were written under one lock.
  void read_data() {
    library_takes(port_, sim::library_call::access);
    for (std::uint32_t i = 0; i < words_; ++i) port_.get(data_ + i, read_[i]);
    port_.flush(leader);
    for (const rma::word w : read_) mine_.violations += w != read_.front() ? 1 : 0;
  }

  Port& port_;
  const run_plan& plan_;
  Clock clock_;
  rank_result& mine_;
  rma::barrier<Port> barrier_;
  phases<Port, Clock> phases_;
  checker<Port> check_;
  measured_lock<lock::created<Lock, Port>, Port> lock_;
  rma::plain_cell coming_;  // [rank], at the leader: the round that it comes in
  rma::plain_cell over_;    // at the leader
  rma::plain_cell data_;
  std::uint32_t words_;
  std::vector<rma::word> read_;
};

}  // namespace lockflight::bench
