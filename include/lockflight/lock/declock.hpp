// declock: cql among nodes. The participants of a node queue in its memory, and pass the lock among
// themselves a few times before their node passes it on.
//
// Source: "DecLock: A Case of Decoupled Locking for Disaggregated Memory" (arXiv 2505.17641), the
// hierarchical lock above CQL. The record of a node is the one there: its state, the number of its
// readers, and a queue, all behind a ticket lock of the node.
//
// Differences from the text:
// H1  How long a node keeps the lock is bounded by a number of grants, and then by whether another
//     node is in the queue at the home. (In the paper each request has a time stamp, and a node
//     keeps the lock while its next request is older than the oldest one known of other nodes. That
//     needs clocks that are synchronised across hosts.)
// H2  The next one is always the head of the node's queue. (The paper also has a mode that prefers
//     readers.)
// H3  The record is closed before the lock at the home is released. (In the paper it is open
//     meanwhile, since the ring has room for one place of each node; cql has one for each rank.)
// H4  try_lock and try_lock_shared, which the text does not have.
//
// Invariants:
// - The words of a node's record are read and written only by the participant that has it open, or,
//   while the state is `pending`, by the one that acquires or holds for the node (`granted`,
//   `place`).
// - While the state is `shared` or `writer_waits`, the node has one reader's place at the home.
// - A waiter in the node's queue is passed one of two values: `enter`, or `acquire` for the node.
//   The state stays `pending` meanwhile, so no other one does.
//
// Order: first come, first served inside a node, but that waiting readers join a reader that
// enters. Fairness: among nodes as cql. A node that others wait for grants at most `handovers`
// times more.
//
// Cost in network operations; waiting is local:
// | first of a node, last of a node | cql's                                                   |
// | inside a node                   | none; every `handovers`-th grant 1 get at the home      |
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/cql.hpp"
#include "lockflight/lock/part/node_record.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct declock_parameters {
  std::int64_t handovers = 4;

  [[nodiscard]] static constexpr auto all() {
    return std::array{parameter<declock_parameters>{
        "handovers", [](auto& p) -> std::int64_t& { return p.handovers; }, 0, 1'000'000,
        "grants inside a node in a row while other nodes wait"}};
  }
};

template <rma::port Port>
class declock {
 public:
  static constexpr facts about{
      .name = "declock",
      .what = kind::rw,
      .source = "DecLock: A Case of Decoupled Locking for Disaggregated Memory, arXiv 2505.17641",
      .bytes_home = 8,
      .bytes_per_node = 64,
      .bytes_per_participant = 24,
      .bytes_home_per_rank = 16,
  };
  using parameters = declock_parameters;

  /// This lock's words.
  struct cells {
    typename cql<Port>::cells queue;
    rma::plain_cell line;  // on each rank: those of leaders are the records of their nodes

    static cells place(rma::layout& in, const rma::topology& machine, const parameters&,
                       rma::rank_t home) {
      // The ring last, since it alone depends on the number of ranks.
      const auto line = in.take<rma::plain_cell>(rma::line_words);
      return {cql<Port>::cells::place(in, machine, {}, home), line};
    }
  };

  /// How many ranks can use a lock.
  [[nodiscard]] static constexpr std::int64_t most_ranks(const parameters&) {
    return cql<Port>::most_ranks({});
  }

  declock(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : port_(me.port()),
        queue_(me, where.queue),
        node_(me, where.line.at(me.machine().leader_of(me.rank(), me.machine().node_level()))),
        handovers_(static_cast<rma::word>(set.handovers)) {}

  // ---- readers ----

  void lock_shared() {
    node_.open();
    if (may_join()) {
      join();
      return node_.close();
    }
    if (wait_in_node(/*exclusive=*/false) == enter) return;
    queue_.lock_shared();
    begin_sharing();
  }

  /// Takes the lock if readers of this node are in and no writer of it waits, or if no participant
  /// of this node is in or waits and cql's attempt succeeds.
  [[nodiscard]] bool try_lock_shared() {
    node_.open();
    const bool joins = may_join();
    if (joins) join();
    if (joins || node_.load(node_.state) != free) {
      node_.close();
      return joins;
    }
    port_.store(node_.state, pending);
    node_.close();
    if (!queue_.try_lock_shared()) return give_up();
    begin_sharing();
    return true;
  }

  void unlock_shared() {
    node_.open();
    const rma::word readers = node_.load(node_.readers);
    rma::ensure(readers > 0, "a reader that leaves is counted");
    port_.store(node_.readers, readers - 1);
    if (readers > 1) return node_.close();
    const rma::word succ = leave_node();
    queue_.unlock_shared();
    if (succ != rma::null_ref) node_.pass(succ, acquire);
  }

  // ---- writers ----

  void lock() {
    node_.open();
    if (wait_in_node(/*exclusive=*/true) == enter)
      return queue_.take_over(static_cast<std::uint32_t>(node_.load(node_.place)));
    queue_.lock();
    begin_writing();
  }

  /// Takes the lock if no participant of this node is in or waits, and cql's attempt succeeds.
  [[nodiscard]] bool try_lock() {
    node_.open();
    const bool is_free = node_.load(node_.state) == free;
    if (is_free) port_.store(node_.state, pending);
    node_.close();
    if (!is_free) return false;
    if (!queue_.try_lock()) return give_up();
    begin_writing();
    return true;
  }

  void unlock() {
    node_.open();
    const rma::word first = node_.first();
    if (first != rma::null_ref && node_.is_writer(first) && may_grant(/*by_reader=*/false)) {
      count_grant();
      node_.take_first();
      node_.close();
      return node_.pass(first, enter);  // the place at the home is the successor's now
    }
    const rma::word succ = leave_node();
    queue_.unlock();
    if (succ != rma::null_ref) node_.pass(succ, acquire);
  }

 private:
  // The values that are passed to a waiter in the node's queue.
  static constexpr rma::word enter = 1;
  static constexpr rma::word acquire = 2;  // for the node, from cql

  // States of a node.
  static constexpr rma::word free = 0;
  static constexpr rma::word pending = 1;       // one of it acquires, or is in as a writer
  static constexpr rma::word shared = 2;        // readers are in, and others may join them
  static constexpr rma::word writer_waits = 3;  // readers are in, and a writer of the node waits

  // ---- with the record open ----

  [[nodiscard]] bool may_join() {
    return node_.load(node_.state) == shared && may_grant(/*by_reader=*/true);
  }
  void join() {
    count_grant();
    port_.store(node_.readers, node_.load(node_.readers) + 1);
  }

  // H1: whether the holder may let one more participant of the node in.
  [[nodiscard]] bool may_grant(bool by_reader) {
    if (node_.load(node_.granted) < handovers_) return true;
    if (queue_.is_awaited(/*by_writers_alone=*/by_reader)) return false;
    port_.store(node_.granted, 0);
    return true;
  }
  void count_grant() { port_.store(node_.granted, node_.load(node_.granted) + 1); }

  // Returns what we are to do: `acquire` at once if the node is free, else what is passed to us.
  [[nodiscard]] rma::word wait_in_node(bool is_exclusive) {
    const rma::word state = node_.load(node_.state);
    if (state == free) {
      port_.store(node_.state, pending);
      node_.close();
      return acquire;
    }
    const rma::queue_node mine = node_.enter(is_exclusive);
    if (is_exclusive && state == shared) port_.store(node_.state, writer_waits);
    node_.close();
    return node_.await_passed(mine);
  }

  // Closes the record. The last one of the node leaves: returns the one that is to acquire next.
  [[nodiscard]] rma::word leave_node() {
    const rma::word first = node_.take_first();
    port_.store(node_.state, first == rma::null_ref ? free : pending);
    node_.close();
    return first;
  }

  // ---- with the record closed ----

  void begin_writing() {
    port_.store(node_.granted, 0);
    port_.store(node_.place, queue_.place());
  }

  // This reader is in for its node. Its readers that wait join us; its writers wait on.
  void begin_sharing() {
    node_.open();
    port_.store(node_.readers, 1 + node_.pass_to_all_readers(enter));
    port_.store(node_.granted, 0);
    port_.store(node_.state, node_.first() == rma::null_ref ? shared : writer_waits);
    node_.close();
  }

  // An attempt failed at the home: a participant of the node that came meanwhile acquires.
  [[nodiscard]] bool give_up() {
    node_.open();
    if (const rma::word first = leave_node(); first != rma::null_ref) node_.pass(first, acquire);
    return false;
  }

  Port& port_;
  cql<Port> queue_;
  node_record<Port> node_;
  rma::word handovers_;
};

}  // namespace lockflight::lock
