// The record that a node keeps of a lock of declock: a few numbers and a queue of the node's
// waiters, behind a ticket lock.
//
// Source: "DecLock: A Case of Decoupled Locking for Disaggregated Memory" (arXiv 2505.17641), the
// hierarchical lock.
//
// Invariants: the queue is read and changed only while its participant has the record open. A queue
// node is that of a waiter until a value has been passed to it; a free one is all zero (C25).
//
// Network operations: none. CPU operations:
// | open, close | 1 fetch-add, 1 await; 1 store                          |
// | wait        | 3 or 4 stores to enter the queue, 1 await and 3 stores |
#pragma once

#include <cstdint>

#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class node_record {
 public:
  /// `line` is the cache line of the node's leader.
  node_record(rma::participant<Port>& me, rma::plain_cell line)
      : state(line + 2),
        readers(line + 3),
        granted(line + 6),
        place(line + 7),
        me_(me),
        port_(me.port()),
        tickets_{line.home, line.index},
        served_(line + 1),
        first_(line + 4),
        last_(line + 5) {}

  // The lock's own words of the node.
  rma::plain_cell state;
  rma::plain_cell readers;  // the node's readers that are in
  rma::plain_cell granted;  // grants inside the node since it acquired at, or asked, the home
  rma::plain_cell place;    // the place of the node's writer at the home

  void open() {
    ticket_ = port_.cpu_fetch_add(tickets_, 1);
    port_.await(served_, rma::equals(ticket_));
  }
  void close() { port_.store(served_, ticket_ + 1); }

  [[nodiscard]] rma::word load(rma::plain_cell from) { return port_.load(from); }

  // ---- while it is open ----

  /// The queue node of the first waiter, or null_ref.
  [[nodiscard]] rma::word first() { return load(first_); }
  [[nodiscard]] bool is_writer(rma::word waiter) { return load(of(waiter)[exclusive]) != 0; }

  /// Enters the queue as its last waiter. Returns our queue node.
  [[nodiscard]] rma::queue_node enter(bool is_exclusive) {
    const rma::queue_node mine = me_.take_queue_node();
    port_.store(mine[exclusive], is_exclusive ? 1 : 0);
    push(rma::to_word(mine.first));
    return mine;
  }

  /// Takes the first waiter out of the queue. Returns its queue node, or null_ref.
  rma::word take_first() {
    const rma::word taken = first();
    if (taken == rma::null_ref) return taken;
    const rma::word behind = load(of(taken)[next]);
    port_.store(first_, behind);
    if (behind == rma::null_ref) port_.store(last_, rma::null_ref);
    return taken;
  }

  /// Takes all readers out of the queue and passes `what` to them. Returns how many.
  rma::word pass_to_all_readers(rma::word what) {
    rma::word count = 0;
    rma::word waiter = first();
    port_.store(first_, rma::null_ref);
    port_.store(last_, rma::null_ref);
    while (waiter != rma::null_ref) {
      const rma::word behind = load(of(waiter)[next]);
      if (is_writer(waiter)) {
        port_.store(of(waiter)[next], rma::null_ref);
        push(waiter);
      } else {
        ++count;
        pass(waiter, what);
      }
      waiter = behind;
    }
    return count;
  }

  // ---- open or not ----

  /// Waits until a value is passed to us, and returns it. Our queue node is out of the queue then.
  [[nodiscard]] rma::word await_passed(rma::queue_node mine) {
    const rma::word what = port_.await(mine[passed], rma::differs_from(0));
    for (const std::uint32_t word : {next, exclusive, passed}) port_.store(mine[word], 0);
    me_.give_back(mine);
    return what;
  }
  void pass(rma::word waiter, rma::word what) { port_.store(of(waiter)[passed], what); }

 private:
  // The words of a queue node.
  static constexpr std::uint32_t next = 0;       // the successor's queue node, or null_ref
  static constexpr std::uint32_t exclusive = 1;  // 1 of a writer
  static constexpr std::uint32_t passed = 2;     // 0 while its owner waits

  [[nodiscard]] static rma::queue_node of(rma::word waiter) {
    return {rma::from_word<rma::plain_cell>(waiter)};
  }
  void push(rma::word own) {
    const rma::word before = load(last_);
    port_.store(before == rma::null_ref ? first_ : of(before)[next], own);
    port_.store(last_, own);
  }

  rma::participant<Port>& me_;
  Port& port_;
  rma::cpu_cell tickets_;   // drawn …
  rma::plain_cell served_;  // … and served: the ticket lock
  rma::plain_cell first_, last_;
  rma::word ticket_ = 0;
};

}  // namespace lockflight::lock
