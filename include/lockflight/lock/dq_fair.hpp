// dq-fair: dq, but clients replace the tail in the order of tokens that they draw, so that no
// client starves.
//
// Source: "Distributed Queue-based Locking using Advanced Network Features" (DLM paper), section
// 4.4, called Starvation-free there. A token is a counter and the identity of a client. The
// unlocked state holds the last token's counter without an identity, since the next client waits
// for exactly that counter. So does the word from which tokens are drawn.
//
// Invariant: counters wrap around, but drawn tokens that are not yet the tail are at most as many
// as there are clients, and their counters follow the tail's. As long as the counter has a value
// for each client, the token after the tail's is unique.
//
// Order: first come, first served, by the order of the fetch-adds.
// Fairness: once its fetch-add has taken effect, a waiter is not overtaken.
//
// Cost in network operations (Table 3); waiting for a predecessor is local:
// | acquire, free                 | 1 fetch-add, 1 compare-swap                 |
// | acquire, behind a predecessor | 1 fetch-add, 2 compare-swaps or more, 1 put |
// | release, no successor         | 1 compare-swap                              |
// | handoff                       | as dq                                       |
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/client_queue.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct dq_fair_parameters {
  std::int64_t counter_bits = 32;

  [[nodiscard]] static constexpr auto all() {
    return std::array{parameter<dq_fair_parameters>{
        "counter_bits", [](auto& p) -> std::int64_t& { return p.counter_bits; }, 3, 32,
        "bits of a token's counter; with fewer it wraps around sooner, and fewer ranks can lock"}};
  }
};

/// A 64-bit token: a counter, and below it the client's identity, which is its rank and the number
/// of its queue node. Identity 0 is no client.
class token_format {
 public:
  explicit constexpr token_format(const dq_fair_parameters& set)
      : identity_bits_(rma::word{64} - static_cast<rma::word>(set.counter_bits)) {}

  /// The token of the `number`-th request, without an identity. Bits beyond the counter are cut
  /// off, also when such tokens are added.
  [[nodiscard]] constexpr rma::word of(rma::word number) const { return number << identity_bits_; }
  /// The identity of the client with this queue node.
  [[nodiscard]] static constexpr rma::word identity(rma::plain_cell node) {
    return static_cast<rma::word>(node.home) << node_bits | node.index / rma::line_words;
  }
  [[nodiscard]] constexpr bool is_nobodys(rma::word token) const { return node(token).index == 0; }
  [[nodiscard]] constexpr bool same_counter(rma::word a, rma::word b) const {
    return (a ^ b) >> identity_bits_ == 0;
  }
  /// The queue node that the token names.
  [[nodiscard]] constexpr rma::plain_cell node(rma::word token) const {
    const rma::word identity = token & ((rma::word{1} << identity_bits_) - 1);
    const rma::word number = identity & ((rma::word{1} << node_bits) - 1);
    return {static_cast<rma::rank_t>(identity >> node_bits),
            static_cast<std::uint32_t>(number) * rma::line_words};
  }

  /// How many clients a token can name and its counter distinguish.
  [[nodiscard]] constexpr std::int64_t most_clients() const {
    const rma::word counters = 64 - identity_bits_;
    return std::int64_t{1} << std::min(counters, identity_bits_ - node_bits);
  }

 private:
  // Queue nodes are the first cells of a segment, from index line_words on, so their numbers start
  // at 1.
  static constexpr rma::word node_bits = 6;

  rma::word identity_bits_;
};

template <rma::port Port>
class dq_fair {
 public:
  static constexpr facts about{
      .name = "dq-fair",
      .what = kind::mutex,
      .source = "Starvation-free: Distributed Queue-based Locking, section 4.4",
      .bytes_home = 16,
      .bytes_per_node = 0,
      .bytes_per_participant = 16,
  };
  using parameters = dq_fair_parameters;
  static_assert(rma::participant<Port>::most_nested < 64,
                "token_format names a queue node in 6 bits");

  /// This lock's words, at the home.
  struct cells {
    rma::nic_cell tail;   // the last client's token, or its counter alone
    rma::nic_cell drawn;  // the counter of the token that was drawn last

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto both = in.take<rma::nic_cell>(2).at(home);
      return {both, both + 1};
    }
  };

  /// How often a waiter can be overtaken by later participants.
  [[nodiscard]] static constexpr std::int64_t most_overtaken(const rma::topology&,
                                                             const parameters&) {
    return 0;
  }

  /// How many ranks can use a lock with these parameters.
  [[nodiscard]] static constexpr std::int64_t most_ranks(const parameters& set) {
    return token_format(set).most_clients();
  }

  /// Throws std::invalid_argument if there are more ranks than a token can name.
  dq_fair(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : port_(me.port()), cells_(where), format_(set), queue_(me) {
    if (me.machine().ranks() > most_ranks(set))
      throw std::invalid_argument("dq-fair with counter_bits=" + std::to_string(set.counter_bits) +
                                  ": " + std::to_string(me.machine().ranks()) +
                                  " ranks (accepted: 1 to " + std::to_string(most_ranks(set)) +
                                  ", as many as its tokens can name)");
  }

  void lock() {
    queue_.take_queue_node();
    wait_behind(rma::fetch_add_now(port_, cells_.drawn, format_.of(1)));
  }

  /// Takes the lock if it is free and no drawn token is still to become the tail. 2 gets in one
  /// round trip, then 2 compare-swaps: a token is drawn only if no client can be ahead of it. If
  /// other clients have drawn exactly all counters between the two, the compare-swap succeeds all
  /// the same; the client has then drawn as lock() does, and waits as lock() does.
  [[nodiscard]] bool try_lock() {
    rma::word tail = 0;
    rma::word drawn = 0;
    port_.get(cells_.tail, tail);
    port_.get(cells_.drawn, drawn);
    port_.flush(cells_.tail.home);
    if (tail != drawn) return false;
    queue_.take_queue_node();
    const rma::word ours = drawn + format_.of(1);
    if (rma::compare_swap_now(port_, cells_.drawn, drawn, ours) != drawn) {
      queue_.give_back_queue_node();
      return false;
    }
    wait_behind(drawn);
    return true;
  }

  void unlock() {
    if (!queue_.has_successor()) {
      const rma::word nobody = token_ ^ token_format::identity(queue_.node());
      if (rma::compare_swap_now(port_, cells_.tail, token_, nobody) == token_)
        return queue_.give_back_queue_node();
      queue_.await_successor();  // the transient state (section 4.3.1)
    }
    queue_.pass_on();
  }

 private:
  // With the token after `before_us`.
  void wait_behind(rma::word before_us) {
    token_ = (before_us + format_.of(1)) | token_format::identity(queue_.node());
    // Only the token after the tail's may replace it. The first guess: the client that drew before
    // us has left.
    rma::word pred = before_us;
    for (rma::backoff back_off(200, 20'000);;) {
      const rma::word tail = rma::compare_swap_now(port_, cells_.tail, pred, token_);
      if (tail == pred) break;
      if (format_.same_counter(tail, pred))
        pred = tail;  // we are next, and no other client can be
      else
        port_.pause(back_off.next());
    }
    if (!format_.is_nobodys(pred)) queue_.wait_behind(format_.node(pred));
  }

  Port& port_;
  cells cells_;
  token_format format_;
  client_queue<Port> queue_;
  rma::word token_ = 0;
};

}  // namespace lockflight::lock
