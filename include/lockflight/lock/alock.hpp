// alock: the asymmetric lock. Participants on the home's node, the local cohort, queue with CPU
// atomics; the others, the remote cohort, queue through the network. The heads of the two queues
// agree by Peterson's algorithm, which needs only reads and writes.
//
// Source: "ALock: Asymmetric Lock Primitive for RDMA Systems", section 5, Algorithms 1 to 4. A
// cohort's tail is also its flag in Peterson's algorithm: it is not null while the cohort wants or
// has the lock. Inside a cohort the lock is passed on `budget` times; then the cohort makes itself
// the victim and so lets the other one in, if that one waits.
//
// Differences from the text:
// - The head of a cohort reads the other cohort's tail first and becomes the victim only if that is
//   set: without a rival it has the lock after one read.
// - The tail is changed by a swap instead of a loop of compare-and-swaps.
// - A holder that leaves first checks for a known successor and only then tries to reset the tail.
// - The cell `budget` holds 0 for "wait" (the paper: -1) and budget + 1 for the rest, so that a
//   fresh queue node waits.
//
// Invariants: the two kinds of atomics never meet on a cell. A head enters only after it has read
// that the other cohort's tail is null or that its own cohort is not the victim.
//
// Order: first come, first served inside a cohort.
// Fairness: while a cohort's head waits, the other cohort is served until its budget ends, and once
// more if that was before the head had become the victim.
//
// Cost in network operations from other nodes; none on the home's node. Waiting for a predecessor
// is local:
// | acquire, free                     | 1 swap, 1 get                                          |
// | acquire, behind a predecessor     | 1 swap, 1 put                                          |
// | acquire, against the other cohort | 1 swap, 1 get, 1 put, and 2 gets a poll, with back-off |
// | release                           | 1 compare-swap                                         |
// | handoff                           | 1 put, and every `remote_budget` handoffs 1 get        |
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct alock_parameters {
  std::int64_t local_budget = 5;  // section 6.1
  std::int64_t remote_budget = 20;

  [[nodiscard]] static constexpr auto all() {
    return std::array{
        parameter<alock_parameters>{
            "local_budget", [](auto& p) -> std::int64_t& { return p.local_budget; }, 1,
            std::int64_t{1} << 32,
            "acquires in a row on the home's node before the others are let in"},
        parameter<alock_parameters>{
            "remote_budget", [](auto& p) -> std::int64_t& { return p.remote_budget; }, 1,
            std::int64_t{1} << 32,
            "acquires in a row from other nodes before the home's node is let in"},
    };
  }
};

template <rma::port Port>
class alock {
 public:
  static constexpr facts about{
      .name = "alock",
      .what = kind::mutex,
      .source = "ALock: Asymmetric Lock Primitive for RDMA Systems, section 5",
      .bytes_home = 24,
      .bytes_per_node = 0,
      .bytes_per_participant = 16,
  };
  using parameters = alock_parameters;

  /// This lock's words: one cache line at the home.
  struct cells {
    rma::cpu_cell local_tail;   // the queue node of the local cohort's last, or null_ref
    rma::nic_cell remote_tail;  // the same of the remote cohort
    rma::plain_cell victim;     // the cohort that lets the other one go first

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto line = in.take<rma::plain_cell>(rma::line_words).at(home);
      return {.local_tail = {line.home, line.index},
              .remote_tail = {line.home, line.index + 1},
              .victim = line + 2};
    }
  };

  /// How often a waiter can be overtaken by later participants, which are of the other cohort. The
  /// waiter's cohort serves the participants ahead of it in phases of one budget. Before each
  /// phase, the waiter's included, it waits for at most two budgets of the other cohort.
  [[nodiscard]] static constexpr std::int64_t most_overtaken(const rma::topology& machine,
                                                             const parameters& set) {
    const std::int64_t most_ahead = std::max(machine.ranks() - 2, 0);
    const std::int64_t phases = most_ahead / std::min(set.local_budget, set.remote_budget) + 1;
    return phases * 2 * std::max(set.local_budget, set.remote_budget);
  }

  alock(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : me_(me),
        port_(me.port()),
        cells_(where),
        local_(me.machine().same_node(where.local_tail.home, me.rank())),
        whole_budget_(static_cast<rma::word>(local_ ? set.local_budget : set.remote_budget)) {}

  void lock() {
    node_ = me_.take_queue_node();
    const rma::word pred = swap_tail(rma::to_word(node_.first));
    if (pred == rma::null_ref) {
      budget_ = 0;
    } else {
      // The predecessor must know our queue node.
      write(rma::queue_node{rma::from_word<rma::plain_cell>(pred)}[next],
            rma::to_word(node_.first));
      budget_ = port_.await(node_[budget], rma::differs_from(waits)) - passed;
      port_.store(node_[budget], waits);
    }
    if (budget_ > 0) return;  // passed on inside the cohort
    compete();
    budget_ = whole_budget_;
  }

  /// Takes the lock if both cohorts' tails are null. On the home's node 1 CPU compare-swap and 1
  /// load; from elsewhere 1 compare-swap and 1 get; to withdraw, 1 store or put and what unlock
  /// costs.
  [[nodiscard]] bool try_lock() {
    node_ = me_.take_queue_node();
    if (compare_swap_tail(rma::null_ref, rma::to_word(node_.first)) != rma::null_ref) {
      me_.give_back(node_);
      return false;
    }
    budget_ = whole_budget_;
    if (other_tail() == rma::null_ref) return true;
    // A participant that keeps trying must not look like a holder at each poll of the other head.
    give_way();
    budget_ = 1;  // the lock is not ours: our successor must compete for it
    unlock();
    return false;
  }

  void unlock() {
    rma::ensure(budget_ > 0, "the holder's own acquire is in the budget");
    rma::word succ = port_.load(node_[next]);
    if (succ == rma::null_ref) {
      // This also clears our cohort's flag: it is the release to the other cohort.
      const rma::word own = rma::to_word(node_.first);
      if (compare_swap_tail(own, rma::null_ref) == own) {
        me_.give_back(node_);
        return;
      }
      // A successor swapped itself in behind this node and is about to write its link.
      rma::ensure(me_.has_taken(node_), "only the holder releases");
      succ = port_.await(node_[next], rma::differs_from(rma::null_ref));
    }
    port_.store(node_[next], rma::null_ref);
    write(rma::queue_node{rma::from_word<rma::plain_cell>(succ)}[budget], budget_ - 1 + passed);
    me_.give_back(node_);
  }

 private:
  // The words of a queue node, the paper's descriptor. A free one is all zero (C25).
  static constexpr std::uint32_t next = 0;    // the successor's queue node, or null_ref
  static constexpr std::uint32_t budget = 1;  // `waits`, or the rest of the budget + `passed`
  static constexpr rma::word waits = 0;
  static constexpr rma::word passed = 1;

  // Values of `victim`. Zeroed memory names no cohort.
  static constexpr rma::word local_cohort = 1;
  static constexpr rma::word remote_cohort = 2;

  /// Algorithm 4, pLock and pReacquire in one: our tail is set, so the other cohort sees our
  /// interest.
  void compete() {
    // A head that sees the other tail null after it has set its own has the lock: the other
    // cohort's head reads after it sets its tail, finds ours, and becomes the victim.
    if (other_tail() == rma::null_ref) return;
    give_way();
    if (local_) port_.fence();  // the reads below come after it (C13)
    for (rma::backoff b = poll_schedule(); !may_enter();) port_.pause(b.next());
  }

  /// Our cohort becomes the victim.
  void give_way() {
    if (local_)
      port_.store(cells_.victim, local_cohort);
    else
      rma::put_now(port_, cells_.victim, remote_cohort);  // flushed: reads come after it
  }

  /// True if the other cohort does not want the lock, or is the victim. Each condition alone
  /// suffices, so the order of the two reads does not matter.
  [[nodiscard]] bool may_enter() {
    if (local_)
      return port_.load(cells_.remote_tail) == rma::null_ref ||
             port_.load(cells_.victim) != local_cohort;
    rma::word tail = 0;
    rma::word victim = 0;
    port_.get(cells_.local_tail, tail);
    port_.get(cells_.victim, victim);
    port_.flush(cells_.victim.home);
    return tail == rma::null_ref || victim != remote_cohort;
  }

  /// A poll costs two loads on the home's node, and a round trip from others.
  [[nodiscard]] rma::backoff poll_schedule() const {
    return local_ ? rma::backoff::none() : rma::backoff(500, 8'000);
  }

  // Each cohort's access to the lock's words and to the queue nodes of its members.

  [[nodiscard]] rma::word swap_tail(rma::word own) {
    return local_ ? port_.cpu_swap(cells_.local_tail, own)
                  : rma::swap_now(port_, cells_.remote_tail, own);
  }
  [[nodiscard]] rma::word compare_swap_tail(rma::word expected, rma::word desired) {
    return local_ ? port_.cpu_compare_swap(cells_.local_tail, expected, desired)
                  : rma::compare_swap_now(port_, cells_.remote_tail, expected, desired);
  }
  [[nodiscard]] rma::word other_tail() {
    return local_ ? port_.load(cells_.remote_tail) : rma::get_now(port_, cells_.local_tail);
  }
  // Flushed, else a waiter would wait until we flush something else.
  void write(rma::plain_cell to, rma::word value) {
    if (local_)
      port_.store(to, value);
    else
      rma::put_now(port_, to, value);
  }

  rma::participant<Port>& me_;
  Port& port_;
  cells cells_;
  bool local_;              // which cohort we are in
  rma::word whole_budget_;  // of our cohort
  rma::word budget_ = 0;    // acquires that the cohort has left, this one included
  rma::queue_node node_;
};

}  // namespace lockflight::lock
