// dq-fair: dq whose clients replace the tail in the order of tokens, so that nobody starves.
//
// Source: "Distributed Queue-based Locking using Advanced Network Features" (DLM paper), section
// 4.4, called Starvation-free there. The unlocked state keeps the token's counter, since the next
// client waits for exactly that one: the tail is (counter of whoever was last, its identity or
// nobody). The word that tokens are drawn from holds nobody's token with the counter drawn last.
//
// Counters wrap around, in the word that tokens are drawn from too. Tokens that are drawn and not
// yet the tail are at most as many as there are clients, and follow the tail's: as long as a
// counter can tell so many apart, the one after the tail's is unique, wherever the counter stands.
//
// Order: first come, first served, by the order of the fetch-adds.
// Fairness bound: overtaken by nobody once the fetch-add has taken effect.
// Network operations: uncontended 1 fetch-add and 1 compare-swap to acquire, 1 compare-swap to
// release (Table 3); behind somebody one compare-swap more, or more until it is our turn to replace
// the tail, and 1 put; handoff as dq.
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
        "bits of a token that count; with fewer they wrap around sooner, and fewer can lock"}};
  }
};

/// A 64-bit token: a client's counter, and below it the client's identity, which is its rank and
/// the number of its line. Identity 0 is nobody.
class token_format {
 public:
  explicit constexpr token_format(const dq_fair_parameters& set)
      : identity_bits_(rma::word{64} - static_cast<rma::word>(set.counter_bits)) {}

  /// The token of the `number`-th request, nobody's. What the counter cannot hold is cut off, also
  /// when such tokens are added up.
  [[nodiscard]] constexpr rma::word of(rma::word number) const { return number << identity_bits_; }
  /// The identity of whoever has this place in the queue.
  [[nodiscard]] static constexpr rma::word identity(rma::plain_cell place) {
    return static_cast<rma::word>(place.home) << line_bits | place.index / rma::line_words;
  }
  [[nodiscard]] constexpr bool is_nobodys(rma::word token) const { return place(token).index == 0; }
  [[nodiscard]] constexpr bool same_counter(rma::word a, rma::word b) const {
    return (a ^ b) >> identity_bits_ == 0;
  }
  /// The place in the queue that the token names.
  [[nodiscard]] constexpr rma::plain_cell place(rma::word token) const {
    const rma::word identity = token & ((rma::word{1} << identity_bits_) - 1);
    const rma::word line = identity & ((rma::word{1} << line_bits) - 1);
    return {static_cast<rma::rank_t>(identity >> line_bits),
            static_cast<std::uint32_t>(line) * rma::line_words};
  }

  /// How many clients a token can name and its counter tell apart.
  [[nodiscard]] constexpr std::int64_t most_clients() const {
    const rma::word counters = 64 - identity_bits_;
    return std::int64_t{1} << std::min(counters, identity_bits_ - line_bits);
  }

 private:
  // Lines are the first that a segment has, from index line_words on; so their numbers start at 1.
  static constexpr rma::word line_bits = 6;

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
  static_assert(rma::participant<Port>::most_nested < 64, "token_format names a line in 6 bits");

  /// This lock's words, at the home.
  struct cells {
    rma::nic_cell tail;   // the last client's token, or its counter and nobody
    rma::nic_cell drawn;  // the token that was drawn last, nobody's

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto both = in.take<rma::nic_cell>(2).at(home);
      return {both, both + 1};
    }
  };

  /// How often a waiter can be overtaken by those who came later.
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
    queue_.take_place();
    wait_behind(rma::fetch_add_now(port_, cells_.drawn, format_.of(1)));
  }

  /// Takes the lock if it is free and nobody has drawn a token that is not yet the tail. 2 gets in
  /// one round trip, then 2 compare-swaps: a token is drawn only if nobody can be before it. But if
  /// others have drawn all counters between the two, so that it looks as if none had, it has drawn
  /// as lock() does and waits for its turn.
  [[nodiscard]] bool try_lock() {
    rma::word tail = 0;
    rma::word drawn = 0;
    port_.get(cells_.tail, tail);
    port_.get(cells_.drawn, drawn);
    port_.flush(cells_.tail.home);
    if (tail != drawn) return false;
    queue_.take_place();
    const rma::word ours = drawn + format_.of(1);
    if (rma::compare_swap_now(port_, cells_.drawn, drawn, ours) != drawn) {
      queue_.give_up_place();
      return false;
    }
    wait_behind(drawn);
    return true;
  }

  void unlock() {
    if (!queue_.has_successor()) {
      const rma::word nobody = token_ ^ token_format::identity(queue_.place());
      if (rma::compare_swap_now(port_, cells_.tail, token_, nobody) == token_)
        return queue_.give_up_place();
      queue_.await_successor();  // the transient state (section 4.3.1)
    }
    queue_.pass_on();
  }

 private:
  // With the token after `before_us`.
  void wait_behind(rma::word before_us) {
    token_ = (before_us + format_.of(1)) | token_format::identity(queue_.place());
    // Only the token after the tail's may replace it. We hope that whoever drew before us has left.
    rma::word pred = before_us;
    for (rma::backoff back_off(200, 20'000);;) {
      const rma::word tail = rma::compare_swap_now(port_, cells_.tail, pred, token_);
      if (tail == pred) break;
      if (format_.same_counter(tail, pred))
        pred = tail;  // our turn, which nobody can take from us: it has not left, or just has
      else
        port_.pause(back_off.next());
    }
    if (!format_.is_nobodys(pred)) queue_.wait_behind(format_.place(pred));
  }

  Port& port_;
  cells cells_;
  token_format format_;
  client_queue<Port> queue_;
  rma::word token_ = 0;
};

}  // namespace lockflight::lock
