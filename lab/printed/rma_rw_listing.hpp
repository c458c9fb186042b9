// rma-rw-listing: RMA-RW as the paper prints it, for the checker and for simulated runs. It is
// broken; rma_rw.hpp is the lock to use.
//
// Source: "High-Performance Distributed RMA Locks", Listings 6 to 10, line by line. Levels N to 2
// are those of rma-mcs (part/queue_tree.hpp), so every flaw is at the root. A parameter corrects
// each flaw, so that the others can be shown:
// 1  set_counters_to_WRITE does not wait for the readers that are in (lines 2 to 7 of Listing 6).
// 2  reset_counter, called by a reader that saw no waiting writer, also removes the WRITE flag of a
//    writer that came in between (lines 17 to 20 of Listing 6).
// 3  A writer resets the counters before it takes itself off the queue (lines 10 to 17 of Listing
//    8). A reader that reaches T_R in between waits for a reset that no participant will make.
// A run needs mend_1, without which the lock excludes no participant. With it alone the rest is as
// printed.
//
// How it differs from rma-rw besides the flaws: a writer goes to one counter after the other, and
// begins without waiting for T_R readers, and level 1 passes the lock on T_W times.
//
// Order and fairness: writers as rma-mcs; readers none. Nothing is promised that a flaw breaks.
//
// Cost in network operations, C counters, N levels:
// | shared lock, its unlock  | 1 fetch-add, 1 add                                            |
// | exclusive lock, free     | N swaps, C adds in C round trips; with mend_1 2 C gets more   |
// | its unlock, no successor | 2 C gets, 2 C adds in 2 C round trips, N compare-swaps        |
// | handoff between writers  | 1 put                                                         |
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/distributed_counter.hpp"
#include "lockflight/lock/part/queue_tree.hpp"

namespace lockflight::lock {

struct rma_rw_listing_parameters {
  std::int64_t t_dc = 1;
  std::int64_t t_r = 1'000;
  locality_thresholds t_l{16, 16, 16, 16};
  std::int64_t mend_1 = 0;
  std::int64_t mend_2 = 0;
  std::int64_t mend_3 = 0;

  [[nodiscard]] static constexpr auto all() {
    using p_t = rma_rw_listing_parameters;
    return std::array{
        parameter<p_t>{"T_DC", [](auto& p) -> std::int64_t& { return p.t_dc; }, 1,
                       std::int64_t{1} << 24, "every T_DC-th rank hosts a counter"},
        parameter<p_t>{"T_R", [](auto& p) -> std::int64_t& { return p.t_r; }, 1,
                       std::int64_t{1} << 40, "readers that enter at a counter in a row"},
        parameter<p_t>{"T_L1", [](auto& p) -> std::int64_t& { return p.t_l[0]; }, 1,
                       tree_status::most_count, "T_L,1"},
        parameter<p_t>{"T_L2", [](auto& p) -> std::int64_t& { return p.t_l[1]; }, 1,
                       tree_status::most_count, "T_L,2"},
        parameter<p_t>{"mend_1", [](auto& p) -> std::int64_t& { return p.mend_1; }, 0, 1,
                       "1: a writer waits for the readers that are in"},
        parameter<p_t>{"mend_2", [](auto& p) -> std::int64_t& { return p.mend_2; }, 0, 1,
                       "1: a reader's reset leaves the WRITE flag alone"},
        parameter<p_t>{"mend_3", [](auto& p) -> std::int64_t& { return p.mend_3; }, 0, 1,
                       "1: a reader that waits at T_R reads the queue again"},
    };
  }
};

template <rma::port Port>
class rma_rw_listing {
  using tree = queue_tree<Port>;
  using order = tree_status::order;

 public:
  static constexpr facts about{
      .name = "rma-rw-listing",
      .what = kind::rw,
      .source = "High-Performance Distributed RMA Locks, Listings 6 to 10, as printed",
      .bytes_home = 8,
      .bytes_per_node = 32,
      .bytes_per_participant = 16,
      .as_printed = true,
  };
  using parameters = rma_rw_listing_parameters;

  struct cells {
    typename tree::cells queues;
    rma::nic_cell counter;  // ARRIVE, DEPART

    static cells place(rma::layout& in, const rma::topology& machine, const parameters&,
                       rma::rank_t home) {
      return {tree::cells::place(in, machine, home), in.take<rma::nic_cell>(2)};
    }
  };

  rma_rw_listing(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : port_(me.port()),
        tree_(me, where.queues),
        set_(set),
        counter_(where.counter),
        ranks_(me.machine().ranks()),
        mine_(counter_host(me.machine(), set.t_dc, me.rank())) {}

  // Listing 9.
  void lock_shared() {
    bool done = false;
    bool barrier = false;
    while (!done) {
      if (barrier) wait_at_barrier();
      const rma::word curr_stat = rma::fetch_add_now(port_, arrive(mine_), 1);
      if (curr_stat >= t_r()) {
        barrier = true;
        if (curr_stat == t_r() && !tree_.occupied(1)) {
          reset_counter(mine_, /*by_reader=*/true);
          barrier = false;
        }
        port_.add(arrive(mine_), ~rma::word{0});
        port_.flush(mine_);
      } else {
        done = true;
      }
    }
  }

  // Listing 10.
  void unlock_shared() {
    port_.add(depart(mine_), 1);
    port_.flush(mine_);
  }

  // Listings 4 and 7.
  void lock() {
    tree_.take_queue_node();
    for (int level = tree_.levels(); level >= 1; --level)
      if (tree_.enter(level) == order::enter) return;
    set_counters_to_write();
  }

  void unlock() {
    release(tree_.levels());
    tree_.give_back_queue_node();
  }

 private:
  static constexpr rma::word half = INT64_MAX / 2;  // the WRITE flag

  [[nodiscard]] rma::word t_r() const { return static_cast<rma::word>(set_.t_r); }
  [[nodiscard]] rma::nic_cell arrive(rma::rank_t at) const { return counter_.at(at); }
  [[nodiscard]] rma::nic_cell depart(rma::rank_t at) const { return counter_.at(at) + 1; }
  [[nodiscard]] static auto below(rma::word limit) {
    return [limit](rma::word now) { return now < limit; };
  }

  // Listing 9, lines 5 to 9.
  void wait_at_barrier() {
    if (set_.mend_3 == 0) {
      port_.poll(arrive(mine_), below(t_r()), rma::backoff(200, 20'000));
      return;
    }
    while (true) {
      const rma::word now = rma::get_now(port_, arrive(mine_));
      if (now < t_r() || (now == t_r() && !tree_.occupied(1))) return;
      port_.pause(200);
    }
  }

  // Listing 6, lines 2 to 7.
  void set_counters_to_write() {
    for (rma::rank_t p = 0; p < ranks_; p += static_cast<rma::rank_t>(set_.t_dc)) {
      port_.add(arrive(p), half);
      port_.flush(p);
    }
    if (set_.mend_1 != 0) wait_for_readers();
  }

  // The wait that the listing lacks (mend_1).
  void wait_for_readers() {
    for (rma::rank_t p = 0; p < ranks_; p += static_cast<rma::rank_t>(set_.t_dc))
      while (rma::get_now(port_, arrive(p)) - half != rma::get_now(port_, depart(p)))
        port_.pause(200);
  }

  // Listing 6, lines 10 to 24.
  void reset_counter(rma::rank_t rank, bool by_reader) {
    rma::word arr_cnt = 0;
    rma::word dep_cnt = 0;
    port_.get(arrive(rank), arr_cnt);
    port_.get(depart(rank), dep_cnt);
    port_.flush(rank);
    rma::word sub_arr_cnt = 0 - dep_cnt;
    const rma::word sub_dep_cnt = 0 - dep_cnt;
    if (arr_cnt >= half && !(by_reader && set_.mend_2 != 0)) sub_arr_cnt -= half;
    port_.add(arrive(rank), sub_arr_cnt);
    port_.add(depart(rank), sub_dep_cnt);
    port_.flush(rank);
  }

  void reset_counters() {
    for (rma::rank_t p = 0; p < ranks_; p += static_cast<rma::rank_t>(set_.t_dc))
      reset_counter(p, /*by_reader=*/false);
  }

  // Listing 5.
  void release(int level) {
    if (level == 1) return release_root();
    const rma::word succ = tree_.successor(level);
    if (succ != rma::null_ref &&
        tree_.status.count(level) < set_.t_l[static_cast<std::size_t>(level - 1)])
      return tree_.pass(level, succ, tree_.status.passed_at(level));
    release(level - 1);
    tree_.leave(level, succ, tree_status(order::acquire_parent));
  }

  // Listing 8.
  void release_root() {
    std::int64_t t_w = 1;
    for (int level = 1; level <= tree_.levels(); ++level)
      t_w *= set_.t_l[static_cast<std::size_t>(level - 1)];
    bool counters_reset = false;
    tree_status next_stat = tree_.status.passed_at(1);
    if (tree_.status.count(1) + 1 == t_w) {
      reset_counters();
      next_stat = tree_status(order::mode_change);
      counters_reset = true;
    }
    const rma::word succ = tree_.successor(1);
    if (succ == rma::null_ref && !counters_reset) {
      reset_counters();
      next_stat = tree_status(order::mode_change);
    }
    tree_.leave(1, succ, next_stat);
  }

  Port& port_;
  tree tree_;
  parameters set_;
  rma::nic_cell counter_;
  rma::rank_t ranks_;
  rma::rank_t mine_;  // c(p)
};

}  // namespace lockflight::lock
