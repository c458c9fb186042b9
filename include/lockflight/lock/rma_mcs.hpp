// rma-mcs: the topology-aware MCS lock, a tree of queues with one queue for each element of the
// machine. The lock is passed on inside an element as long as a threshold allows.
//
// Source: "High-Performance Distributed RMA Locks", section 3.5 (RMA-MCS consists of DQs and DT),
// Listings 4 and 5 at all levels. part/queue_tree.hpp says how they are read and what is corrected.
//
// Order: first come, first served inside an element. Between elements of level i the lock moves on
// after at most T_L,i handoffs inside one, or when no participant waits there.
// Fairness: no waiter starves, but where an element has several participants and is not the only
// one, no number bounds how often a waiter is overtaken. A releaser takes its element out of the
// parent's queue before it sends its successor there (Listing 5), and until the swap of the
// successor other elements may have the lock any number of times. Section 3.5 states no bound.
//
// Cost in network operations, N levels; waiting is local:
// | acquire, free                           | N swaps                                        |
// | release, no successor                   | N compare-swaps                                |
// | handoff inside an element of level N    | 1 put                                          |
// | handoff between two elements of level i | 1 more put or compare-swap for each level left |
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/queue_tree.hpp"

namespace lockflight::lock {

struct rma_mcs_parameters {
  // T_L,1 does not apply: at the root there is no other element to pass the lock to (section 3.5).
  locality_thresholds t_l{0, 32, 32, 32};

  [[nodiscard]] static constexpr auto all() {
    return std::array{
        parameter<rma_mcs_parameters>{"T_L2", [](auto& p) -> std::int64_t& { return p.t_l[1]; }, 0,
                                      tree_status::most_count,
                                      "T_L,2: handoffs inside an element of level 2 in a row"},
        parameter<rma_mcs_parameters>{"T_L3", [](auto& p) -> std::int64_t& { return p.t_l[2]; }, 0,
                                      tree_status::most_count, "T_L,3: the same at level 3"},
        parameter<rma_mcs_parameters>{"T_L4", [](auto& p) -> std::int64_t& { return p.t_l[3]; }, 0,
                                      tree_status::most_count, "T_L,4: the same at level 4"},
    };
  }
};

template <rma::port Port>
class rma_mcs {
  using tree = queue_tree<Port>;
  using order = tree_status::order;

 public:
  static constexpr facts about{
      .name = "rma-mcs",
      .what = kind::mutex,
      .source = "High-Performance Distributed RMA Locks, sections 3.2 and 3.5",
      .bytes_home = 8,
      .bytes_per_node = 16,
      .bytes_per_participant = 16,
  };
  using parameters = rma_mcs_parameters;

  struct cells {
    typename tree::cells queues;

    static cells place(rma::layout& in, const rma::topology& machine, const parameters&,
                       rma::rank_t home) {
      return {tree::cells::place(in, machine, home)};
    }
  };

  /// How often a waiter can be overtaken by later participants: never in a queue that is alone, be
  /// it of the only element of its level or of elements of one participant each.
  [[nodiscard]] static std::optional<std::int64_t> most_overtaken(const rma::topology& machine,
                                                                  const parameters&) {
    for (int level = 2; level <= machine.levels(); ++level)
      if (machine.elements(level) != 1 && machine.elements(level) != machine.ranks())
        return std::nullopt;
    return 0;
  }

  rma_mcs(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : tree_(me, where.queues), set_(set) {}

  void lock() {
    tree_.take_queue_node();
    for (int level = tree_.levels(); level >= 1; --level)
      if (tree_.enter(level) == order::enter) return;
  }

  /// Takes the lock if every queue on the way up is empty; else leaves the queues that it entered.
  /// At most N compare-swaps up and as many back.
  [[nodiscard]] bool try_lock() {
    tree_.take_queue_node();
    for (int level = tree_.levels(); level >= 1; --level) {
      if (tree_.try_enter(level)) continue;
      while (++level <= tree_.levels())
        tree_.leave(level, rma::null_ref, tree_status(order::acquire_parent));
      tree_.give_back_queue_node();
      return false;
    }
    return true;
  }

  void unlock() {
    release(tree_.levels());
    tree_.give_back_queue_node();
  }

 private:
  void release(int level) {
    const rma::word succ = tree_.successor(level);
    if (level == 1) {
      // At the root the lock is always passed on; handoffs are not counted there.
      tree_.leave(1, succ, tree_status(order::enter));
    } else if (succ != rma::null_ref &&
               tree_.status.count(level) < set_.t_l[static_cast<std::size_t>(level - 1)]) {
      tree_.pass(level, succ, tree_.status.passed_at(level));
    } else {
      // No known successor, or T_L,i reached. The parent's queue is left first, so that the
      // participant that we send up finds our element's entry out of it; then our queue.
      release(level - 1);
      tree_.leave(level, succ, tree_status(order::acquire_parent));
    }
  }

  tree tree_;
  parameters set_;
};

}  // namespace lockflight::lock
