// Workloads with many locks: each operation picks one, takes it and gives it back. Acquire and
// release are bracketed by readings of the clock of their own, so that neither the choice nor the
// critical section counts. What a program does around its locks can be added: time between two
// operations, and time that counts as a part of each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "lab/bench/workload/measured_lock.hpp"
#include "lab/bench/workload/phases.hpp"
#include "lab/bench/workload/plan.hpp"
#include "lab/bench/workload/random.hpp"
#include "lab/bench/workload/results.hpp"
#include "lockflight/lock_table.hpp"
#include "lockflight/rma/barrier.hpp"

namespace lockflight::bench {

/// The homes of a plan's locks. The locks of a table are spread over the nodes first, so that a few
/// locks on many ranks are not all on the first nodes, and on each node over its ranks.
[[nodiscard]] inline rma::rank_t home_in(const run_plan& plan, std::uint32_t lock) {
  if (plan.what == workload::contention || plan.what == workload::zipf) return 0;
  const rma::topology& machine = plan.machine;
  const auto ranks = static_cast<std::uint32_t>(machine.ranks());
  if (plan.what == workload::mix) return static_cast<rma::rank_t>(lock % ranks);
  const auto nodes = static_cast<std::uint32_t>(machine.nodes());
  const auto leader = machine.leader(machine.node_level(), static_cast<int>(lock % nodes));
  const auto other = leader + static_cast<rma::rank_t>(lock / nodes % (ranks / nodes));
  // The leader stands in if nodes differ in size, or their ranks are not next to each other.
  return other < machine.ranks() && machine.same_node(leader, other) ? other : leader;
}

template <template <class> class Lock, rma::port Port, class Clock>
class table_run {
 public:
  using parameters = typename Lock<Port>::parameters;

  table_run(rma::participant<Port>& me, const run_plan& plan, const parameters& set,
            const Clock& clock, const run_results& results)
      : me_(me),
        port_(me.port()),
        plan_(plan),
        roles_(plan),
        clock_(clock),
        results_(results),
        mine_(results.of(me.rank())),
        barrier_(me),
        phases_(port_, plan, clock, results),
        check_(me, plan, results),
        random_(plan.seed, static_cast<std::uint64_t>(me.rank())),
        write_below_(chance(roles_.writes(me.rank()))),
        local_below_(chance(plan.locality)),
        counts_releases_(plan.profile != nullptr) {
    if (plan.server_busy && !results.whole())
      done_ = me.cells().template take<rma::plain_cell>(
          static_cast<std::uint32_t>(me.machine().ranks()));
    if (plan.what == workload::table && plan.locality < 1 && plan.profile != nullptr &&
        plan.profile->nic.connections != 0)
      touched_ = me.cells().template take<rma::plain_cell>(1);
    of_each_ = plan.what == workload::table || plan.what == workload::zipf
                   ? lock::in_table(set, {plan.locks, me.machine().ranks()})
                   : set;
    if (plan.what == workload::zipf) {
      data_ = me.cells().template take<rma::plain_cell>(plan.locks).at(0);
      places_.reserve(plan.locks);
    }
    for (std::uint32_t i = 0; i < plan.locks; ++i) {
      const rma::rank_t home = home_in(plan, i);
      auto where = Lock<Port>::cells::place(me.cells(), me.machine(), of_each_, home);
      if (plan.what == workload::zipf) {
        places_.push_back(where);
        continue;
      }
      if (plan.what == workload::mix) share_what_windows_share(where);
      locks_.emplace_back(check_, i, me, where, of_each_);
      (me.machine().same_node(home, me.rank()) ? local_ : remote_).push_back(i);
    }
    // The home of a lock that is made of messages serves by its own handle.
    if (plan.what == workload::zipf && me.rank() == 0)
      for (std::uint32_t i = 0; i < plan.locks; ++i) std::ignore = handle_of(i);
  }

  void run() {
    connect();
    phases_.start(barrier_, roles_);
    if constexpr (requires { clock_.share_core(plan_.server_load); })
      if (plan_.server_load > 0 && port_.rank() == 0) clock_.share_core(plan_.server_load);
    if (roles_.is_active(port_.rank()))
      loop();
    else if (plan_.server_busy)
      compute();
    phases_.done();
    if (done_) rma::put_now(port_, *done_ + static_cast<std::uint32_t>(port_.rank()), 1);
    check_.report();
    barrier_.arrive_and_wait();
    check_.settle();
    if (!roles_.is_active(port_.rank())) mine_.served = port_.counts().messages;
  }

 private:
  using lock_cells = typename Lock<Port>::cells;
  using handle = measured_lock<Lock<Port>, Port>;

  // A simulated run is a thousandth of a real one, in which each rank has long used its connections
  // to the homes of all locks on other nodes. So these are in use when it starts.
  void connect() {
    if (!touched_) return;
    std::set<rma::rank_t> homes;
    for (const std::uint32_t lock : remote_) homes.insert(home_in(plan_, lock));
    for (const rma::rank_t home : homes) std::ignore = rma::get_now(port_, touched_->at(home));
  }

  // The locks of mix are those of one MPI window, and GBH has one global counter for all of them,
  // the first lock's.
  void share_what_windows_share(lock_cells& where) {
    if constexpr (requires { where.global; }) {
      if (!first_) first_ = where;
      where.global = first_->global;
    }
  }

  struct choice {
    std::uint32_t lock;
    bool local;
  };

  [[gnu::noinline]] void loop() {
    std::uint64_t last = clock_.now();
    const std::uint64_t hold = clock_.ticks(plan_.hold_us * 1e-6);
    const std::uint64_t think = clock_.ticks(plan_.think_us * 1e-6);
    const std::uint64_t call = clock_.ticks(plan_.call_us * 1e-6);
    for (bool more = phases_.begin(last); more; more = phases_.next(last)) {
      const bool write = drawn(write_below_);
      const choice which = choose();
      handle& lock = handle_of(which.lock);
      if (think > 0) clock_.busy_until(last + think);
      const std::uint64_t asked = clock_.now();
      if (call > 0) clock_.busy_until(asked + call);
      const bool shared = lock.take(write);
      const std::uint64_t got = clock_.now();
      const witness::entry at = lock.enter(shared);
      if (hold > 0) clock_.busy_until(got + hold);
      if (plan_.what == workload::zipf) access(lock, data_ + which.lock, shared);
      lock.leave(shared, at);
      const std::uint64_t before = counts_releases_ ? port_.counts().network() : 0;
      const std::uint64_t gave = clock_.now();
      lock.give(shared);
      last = clock_.now();
      if (counts_releases_)
        mine_.most_of_a_release =
            std::max(mine_.most_of_a_release, port_.counts().network() - before);
      const std::uint64_t latency = (got - asked) + (last - gave);
      mine_.record(write, latency, got - asked);
      mine_.record_halves(got - asked, last - gave);
      (which.local ? mine_.local : mine_.remote).record(latency);
    }
    phases_.end(last);
  }

  // The other work of a server's processor, until the last client is done: it serves ten thousand
  // times a second.
  void compute() {
    const auto done = [this](rma::rank_t r) {
      if (done_) return port_.load(*done_ + static_cast<std::uint32_t>(r)) != 0;
      const auto progress = results_.of(r).progress.load(std::memory_order_relaxed);
      return progress == rank_result::all_done || rma::is_lost(port_, r);
    };
    for (rma::rank_t client = 1; client < plan_.machine.ranks();) {
      if (done(client)) {
        ++client;
        continue;
      }
      clock_.busy_until(clock_.now() + clock_.ticks(1e-4));
      port_.pause(0);  // serves messages that arrived meanwhile (C37)
    }
  }

  // Of a hundred thousand locks a rank takes only some, and a handle can be large.
  [[nodiscard]] handle& handle_of(std::uint32_t lock) {
    if (plan_.what != workload::zipf) return locks_[lock];
    return used_.try_emplace(lock, check_, lock, me_, places_[lock], of_each_).first->second;
  }

  void access(handle& lock, rma::plain_cell data, bool shared) {
    rma::word value = 0;
    if (shared)
      lock.get(port_, data, value);
    else
      lock.put(port_, data, 1);
  }

  [[nodiscard]] choice choose() {
    if (plan_.what == workload::zipf) {
      constexpr double of_all = 1.0 / static_cast<double>(1ull << 53);
      const double at = static_cast<double>(random_.next() >> 11) * of_all;
      return {plan_.popularity->at(at), port_.machine().same_node(0, port_.rank())};
    }
    if (plan_.what == workload::contention) {
      // Clients are numbered from 0; with as many locks as clients no client waits for another.
      const auto client = static_cast<std::uint32_t>(roles_.client(port_.rank()));
      const std::uint32_t lock = client % plan_.locks;
      return {lock, !local_.empty()};
    }
    if (plan_.what == workload::mix) {
      const auto lock = static_cast<std::uint32_t>(random_.below(plan_.locks));
      return {lock, port_.machine().same_node(home_in(plan_, lock), port_.rank())};
    }
    // A rank whose node has no locks, or all of them, has no choice.
    const bool local = remote_.empty() || (!local_.empty() && drawn(local_below_));
    const auto& of = local ? local_ : remote_;
    return {of[random_.below(of.size())], local};
  }

  [[nodiscard]] bool drawn(std::uint64_t below) { return (random_.next() >> 11) < below; }
  [[nodiscard]] static std::uint64_t chance(double p) {
    return static_cast<std::uint64_t>(p * (1ull << 53));
  }

  rma::participant<Port>& me_;
  Port& port_;
  const run_plan& plan_;
  roles roles_;
  Clock clock_;
  const run_results& results_;
  rank_result& mine_;
  rma::barrier<Port> barrier_;
  phases<Port, Clock> phases_;
  checker<Port> check_;
  std::optional<lock_cells> first_;
  std::optional<rma::plain_cell> touched_;  // of each rank, where cards keep some connections only
  std::optional<rma::plain_cell> done_;  // [rank], at rank 0, which does not see all ranks' results
  parameters of_each_{};
  std::deque<handle> locks_;
  // zipf instead: where each lock is, the handles of those that were taken, and a word at rank 0
  // for each that its holder gets or puts.
  std::vector<lock_cells> places_;
  std::unordered_map<std::uint32_t, handle> used_;
  rma::plain_cell data_{};
  std::vector<std::uint32_t> local_;   // locks with their home on this rank's node
  std::vector<std::uint32_t> remote_;  // the others
  random random_;
  std::uint64_t write_below_;  // of 2^53
  std::uint64_t local_below_;  // of 2^53
  bool counts_releases_;       // counting would take time on a real machine
};

}  // namespace lockflight::bench
