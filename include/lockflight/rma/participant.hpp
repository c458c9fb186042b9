// A participant: one thread of control that locks. It gives every lock a port, a layout from which
// the lock takes its cells, and the queue nodes that queue locks use.
//
// Invariants: all participants of a fabric are made alike and create their locks in the same order
// (C20). A queue node that is in no queue is all zero (C25).
//
// Cost: no network operation. A participant has `most_nested` queue nodes of one cache line each,
// one for each queue lock that it holds or awaits at the same time, whatever the number of locks.
#pragma once

#include <bit>
#include <cstdint>
#include <memory_resource>
#include <stdexcept>
#include <type_traits>

#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/layout.hpp"
#include "lockflight/rma/mailroom.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::rma {

/// A queue node: one cache line of plain cells in the participant's own segment. The header of a
/// lock says what the words of a queue node mean to it. Queue nodes belong to participants, never
/// to locks.
struct queue_node {
  plain_cell first;

  [[nodiscard]] constexpr plain_cell operator[](std::uint32_t i) const { return first + i; }
};

/// A port, with a layout, queue nodes and a mailroom.
template <port Port>
class participant {
 public:
  /// How many queue locks a participant can hold or await at the same time.
  static constexpr int most_nested = most_queue_nodes;

  /// `words` is the size of each rank's segment. Locks allocate their private tables from `memory`.
  participant(Port& p, std::uint32_t words,
              std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : participant(p, layout(words), memory) {}
  /// In a part of each rank's segment. Other participants of the same port may have other parts.
  participant(Port& p, layout part,
              std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : port_(p),
        layout_(part),
        nodes_(layout_.take<plain_cell>(most_nested * line_words)),
        memory_(memory),
        mail_(p, memory) {}

  participant(const participant&) = delete;
  participant& operator=(const participant&) = delete;

  [[nodiscard]] Port& port() { return port_; }
  [[nodiscard]] layout& cells() { return layout_; }
  /// For what a lock must remember beyond its handle. A lock has no private memory elsewhere: the
  /// checker returns to an earlier state by restoring a participant's stack and this memory.
  [[nodiscard]] std::pmr::memory_resource* memory() const { return memory_; }
  /// For locks that send messages: the participant's requests and replies, a mailroom<Port>.
  [[nodiscard]] auto& mail()
    requires messaging_port<Port>
  {
    return mail_;
  }
  [[nodiscard]] rank_t rank() const { return port_.rank(); }
  [[nodiscard]] const topology& machine() const { return port_.machine(); }

  /// A queue node that is in no queue, all of its words 0 (C25). Throws std::length_error past
  /// `most_nested`.
  [[nodiscard]] queue_node take_queue_node() {
    if (abandoned_ != 0) collect();
    if (free_ == 0) throw std::length_error("more than 32 locks held at once by one participant");
    const int slot = std::countr_zero(free_);
    free_ &= free_ - 1;
    return node_at(slot);
  }

  /// Gives back a queue node to which no queue and no other participant refers any more. All of its
  /// words are 0 again (C25).
  void give_back(queue_node n) {
    const std::uint32_t bit = bit_of(n);
    ensure((free_ & bit) == 0, "a queue node is given back once");
    free_ |= bit;
  }

  /// True if the queue node is in use: a lock's handle has one while it holds the lock. A handle
  /// that never held the lock has no queue node.
  [[nodiscard]] bool has_taken(queue_node n) const {
    const std::uint32_t slot = slot_of(n);
    return slot < most_nested && (free_ & 1u << slot) == 0;
  }

  /// The queue nodes that are taken, one bit each; abandoned ones are not among them.
  [[nodiscard]] std::uint32_t taken() const { return ~(free_ | abandoned_); }
  [[nodiscard]] std::uint32_t abandoned() const { return abandoned_; }
  /// Frees these queue nodes, taken or abandoned, whatever is in them. For a queue that no longer
  /// exists: no participant refers to the nodes.
  void reset(std::uint32_t nodes) {
    for (std::uint32_t left = nodes; left != 0; left &= left - 1)
      for (std::uint32_t i = 0; i < line_words; ++i)
        port_.store(node_at(std::countr_zero(left))[i], 0);
    abandoned_ &= ~nodes;
    free_ |= nodes;
  }

  /// The word of a queue node that is not 0 while the node is in a queue that its owner has left.
  static constexpr std::uint32_t in_queue = 1;

  /// Gives back a queue node that is still in a queue. The node is free once the participant that
  /// takes it out of that queue has made all of its words 0, this word last.
  void abandon(queue_node n) {
    const std::uint32_t bit = bit_of(n);
    ensure(((free_ | abandoned_) & bit) == 0, "a queue node is abandoned once, by its owner");
    abandoned_ |= bit;
  }
  /// Takes back an abandoned queue node. False if the node is not abandoned any more: it may be in
  /// use for another lock.
  [[nodiscard]] bool reclaim(queue_node n) {
    const bool is_there = (abandoned_ & bit_of(n)) != 0;
    abandoned_ &= ~bit_of(n);
    return is_there;
  }

 private:
  [[nodiscard]] std::uint32_t slot_of(queue_node n) const {
    return (n.first.index - nodes_.index) / line_words;
  }
  [[nodiscard]] std::uint32_t bit_of(queue_node n) const { return 1u << slot_of(n) % most_nested; }
  [[nodiscard]] queue_node node_at(int slot) const {
    return {nodes_.at(rank()) + static_cast<std::uint32_t>(slot) * line_words};
  }
  void collect() {
    for (std::uint32_t left = abandoned_; left != 0; left &= left - 1) {
      const queue_node n = node_at(std::countr_zero(left));
      if (port_.load(n[in_queue]) != 0) continue;
      abandoned_ &= ~bit_of(n);
      free_ |= bit_of(n);
    }
  }

  Port& port_;
  layout layout_;
  plain_cell nodes_;
  std::pmr::memory_resource* memory_;
  std::uint32_t free_ = ~0u;
  std::uint32_t abandoned_ = 0;
  // A port without messages has no mailroom.
  struct no_mail {
    no_mail(Port&, std::pmr::memory_resource*) {}
  };
  template <class P>
  struct mail_of : std::type_identity<no_mail> {};
  template <messaging_port P>
  struct mail_of<P> : std::type_identity<mailroom<P>> {};
  [[no_unique_address]] typename mail_of<Port>::type mail_;
  static_assert(most_nested == 32, "one bit of free_ for each queue node");
};

}  // namespace lockflight::rma
