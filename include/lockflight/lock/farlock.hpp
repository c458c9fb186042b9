// farlock: a mutex whose local and remote participants get the lock in the order of their tickets.
// Participants on the home's node, the local side, queue with CPU atomics; the others, the remote
// side, queue through the network. The heads of the two queues agree by Peterson's algorithm which
// of them draws the next ticket, and not, as in alock, which of them has the lock.
//
// Source: FARLock (OSDI 2026), by a description of its protocol: the text is not among our papers.
// The words and the order of the steps are those of the description, and what is called `passed`
// here is its budget. What differs from it, or is not in it:
// F1  The head of a side reads the other side's flag first and becomes the victim only if that is
//     set, as in alock.
// F2  The next ticket is a plain cell, since one participant at a time draws. (The artifact has a
//     fetch-add.) The head reads the owner with it, and need not read it again if the lock is free.
// F3  Tickets are counted in `counter_bits` bits that wrap around.
// F4  How many acquires share a ticket is a parameter, and `group` = 1 makes no groups. (The
//     description has five.)
// F5  try_lock, which the description does not have. Its readers, which may starve, are left out.
//
// Invariants:
// - A participant that publishes its ticket reads its link after it, and its successor writes the
//   link before it reads the ticket. So the successor sees the ticket, or is passed `head`, or
//   both; what is passed beside a ticket comes before the grant.
// - A queue node is given back after its successor has read its ticket (`acked`).
// - The members of the group whose ticket is the owner's have the lock one after the other. The
//   last of them advances the owner.
// - part/ticket_draw.hpp has those of the draw.
//
// Order: first come, first served, over both sides, by the order of the draws. A participant that
// joins a group draws with it.
// Fairness: once it has drawn (`take_ticket`), a waiter is not overtaken by later participants.
// Before that, later participants of the other side may draw first: any number until the head of
// our side has raised the flag, then those that join a group which is drawing, and one group more.
//
// Cost in network operations from other nodes; none on the home's node. "+" joins what is one round
// trip where posts are ordered. Waiting for a predecessor is local:
// | acquire, free                | 1 swap, 1 put + 3 gets, 2 puts                               |
// | acquire, behind a ticket     | 1 swap, 1 put + 1 get, 1 put, and the draw as above; once it |
// |                              | is granted 1 get a poll of the owner, with back-off          |
// | the same without a ticket    | 1 put by the predecessor on top; no draw inside a group      |
// | draw, against the other side | 1 put and 2 gets a poll, with back-off, and 2 gets on top    |
// | release, no successor        | 1 put + 1 compare-swap                                       |
// | handoff                      | 2 puts, overlapped; inside a group 1 put                     |
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/part/side_access.hpp"
#include "lockflight/lock/part/ticket_draw.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/packed.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct farlock_parameters {
  std::int64_t group = 5;
  std::int64_t counter_bits = 48;

  [[nodiscard]] static constexpr auto all() {
    return std::array{
        parameter<farlock_parameters>{
            "group", [](auto& p) -> std::int64_t& { return p.group; }, 1, 65'535,
            "acquires of one side, one after the other, that share a ticket"},
        parameter<farlock_parameters>{
            "counter_bits", [](auto& p) -> std::int64_t& { return p.counter_bits; }, 3, 48,
            "bits of a ticket; with fewer it wraps around sooner, and fewer ranks can lock"},
    };
  }
};

/// The handoff value for a successor that finds no ticket: the group's ticket, and how many
/// acquires the group has left, this one included. A whole group makes a head, which draws. 0:
/// nothing was passed yet.
struct farlock_pass : rma::packed<farlock_pass> {
  static constexpr rma::field left{.at = 0, .bits = 16};
  static constexpr rma::field ticket{.at = 16, .bits = 48};
  static_assert(rma::are_disjoint({left, ticket}));
};

template <rma::port Port>
class farlock {
 public:
  static constexpr facts about{
      .name = "farlock",
      .what = kind::mutex,
      .source = "FARLock, OSDI 2026",
      .bytes_home = 56,
      .bytes_per_node = 0,
      .bytes_per_participant = 40,
  };
  using parameters = farlock_parameters;

  /// This lock's words: one cache line at the home.
  struct cells {
    rma::cpu_cell local_tail;   // the queue node of the local side's last, or null_ref
    rma::nic_cell remote_tail;  // the same of the remote side
    typename ticket_draw<Port>::cells draw;

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto line = in.take<rma::plain_cell>(rma::line_words).at(home);
      return {.local_tail = {line.home, line.index},
              .remote_tail = {line.home, line.index + 1},
              .draw = ticket_draw<Port>::cells::from(line + 2)};
    }
  };

  /// How often a waiter that is through the doorway can be overtaken by later participants.
  [[nodiscard]] static constexpr std::int64_t most_overtaken(const rma::topology&,
                                                             const parameters&) {
    return 0;
  }

  /// How many ranks can use a lock with these parameters: each may have a ticket.
  [[nodiscard]] static constexpr std::int64_t most_ranks(const parameters& set) {
    return std::int64_t{1} << set.counter_bits;
  }

  /// Throws std::invalid_argument if there are more ranks than tickets.
  farlock(rma::participant<Port>& me, const cells& where, const parameters& set = {})
      : me_(me),
        port_(me.port()),
        owner_(where.draw.owner),
        side_(me, where.local_tail, where.remote_tail),
        draw_(port_, where.draw, side_),
        group_(static_cast<rma::word>(set.group)),
        last_ticket_((rma::word{1} << set.counter_bits) - 1) {
    if (me.machine().ranks() > most_ranks(set))
      throw std::invalid_argument("farlock with counter_bits=" + std::to_string(set.counter_bits) +
                                  ": " + std::to_string(me.machine().ranks()) +
                                  " ranks (accepted: 1 to " + std::to_string(most_ranks(set)) +
                                  ", as many as there are tickets)");
  }

  void lock() {
    take_ticket();
    await_turn();
  }

  /// The doorway: queues, and draws a ticket or joins a group that has one.
  void take_ticket() {
    node_ = me_.take_queue_node();
    const rma::word pred = side_.swap_tail(rma::to_word(node_.first));
    has_pred_ = pred != rma::null_ref;
    farlock_pass given = head();
    if (has_pred_ && !link_to(node_at(pred)))
      given = farlock_pass::from(port_.await(node_[passed], rma::differs_from(0)));
    const rma::word left = given.get(farlock_pass::left);
    is_member_ = left < group_;
    mine_ = is_member_ ? drawn{given.get(farlock_pass::ticket), false} : draw_.draw();
    pass_on(left);
  }

  /// The rest of the acquire.
  void await_turn() {
    if (has_pred_) port_.await(node_[granted], rma::differs_from(0));
    if (!is_member_ && !mine_.is_turn) draw_.await_turn(mine_.ticket);
  }

  /// Takes the lock if nobody of our side has it or waits, the other side is not about to draw, and
  /// no ticket is out. From other nodes 1 compare-swap, 1 put, 1 get, 2 gets and 2 puts; to
  /// withdraw, up to 2 puts and what leaving the queue costs.
  [[nodiscard]] bool try_lock() {
    node_ = me_.take_queue_node();
    if (side_.compare_swap_tail(rma::null_ref, rma::to_word(node_.first)) != rma::null_ref) {
      me_.give_back(node_);
      return false;
    }
    has_pred_ = is_member_ = is_last_ = false;
    if (!draw_.raise_flag(mine_)) {
      // A participant that keeps trying must not look like a rival at each poll of the other head.
      draw_.give_way();
    } else if (mine_.is_turn) {
      pass_on(group_);
      return true;
    }
    draw_.lower_flag();
    // The successor, if any, becomes the head of our side, and its predecessor has left.
    const rma::word succ = leave_queue();
    if (succ != rma::null_ref) {
      side_.post(node_at(succ)[passed], head().bits());
      side_.post(node_at(succ)[granted], 1);
      side_.complete();
    }
    give_back_node(succ != rma::null_ref);
    return false;
  }

  void unlock() {
    rma::ensure(me_.has_taken(node_), "only the holder releases");
    if (is_last_) side_.post(owner_, after(mine_.ticket));
    const rma::word succ = leave_queue();
    if (succ != rma::null_ref) {
      side_.post(node_at(succ)[granted], 1);
      side_.complete();  // the owner, too
    }
    give_back_node(succ != rma::null_ref);
  }

 private:
  using drawn = typename ticket_draw<Port>::drawn;

  // The words of a queue node. A free one is all zero (C25).
  static constexpr std::uint32_t link = 0;     // the successor's queue node, or null_ref
  static constexpr std::uint32_t ticket = 1;   // our ticket + 1, once nobody can join our group
  static constexpr std::uint32_t passed = 2;   // a farlock_pass from the predecessor
  static constexpr std::uint32_t granted = 3;  // 1: the predecessor has left
  static constexpr std::uint32_t acked = 4;    // 1: the successor has read our ticket

  /// The value that makes a participant the head of its side.
  [[nodiscard]] farlock_pass head() const {
    return farlock_pass{}.with(farlock_pass::left, group_);
  }
  [[nodiscard]] rma::word after(rma::word number) const { return (number + 1) & last_ticket_; }
  [[nodiscard]] static constexpr rma::queue_node node_at(rma::word node) {
    return {rma::from_word<rma::plain_cell>(node)};
  }

  // ---- the queue of our side ----

  /// Makes us known to the predecessor. Returns whether it has published its ticket; if not, it
  /// passes us one or makes us head.
  [[nodiscard]] bool link_to(rma::queue_node pred) {
    const rma::word theirs =
        side_.post_and_read(pred[link], rma::to_word(node_.first), pred[ticket]);
    // Flushed before we wait: the predecessor waits for it at its release.
    side_.post(pred[acked], 1);
    side_.complete();
    return theirs != 0;
  }

  /// This rank has its ticket, and `left` acquires may share it, ours included. Passes it on, or
  /// ends the group and lets the two heads draw.
  void pass_on(rma::word left) {
    const rma::word member = port_.load(node_[link]);
    is_last_ = left == 1 || member == rma::null_ref;
    if (!is_last_) {
      side_.post(node_at(member)[passed], farlock_pass{}
                                              .with(farlock_pass::left, left - 1)
                                              .with(farlock_pass::ticket, mine_.ticket)
                                              .bits());
      return side_.complete();
    }
    draw_.end(after(mine_.ticket));
    port_.store(node_[ticket], mine_.ticket + 1);
    port_.fence();  // the link is read after it (C13)
    if (const rma::word succ = port_.load(node_[link]); succ != rma::null_ref) {
      side_.post(node_at(succ)[passed], head().bits());
      side_.complete();
    }
  }

  /// Returns the successor, which has read our ticket, or null_ref if there is none and the tail is
  /// reset.
  [[nodiscard]] rma::word leave_queue() {
    if (port_.load(node_[link]) == rma::null_ref) {
      const rma::word own = rma::to_word(node_.first);
      if (side_.compare_swap_tail(own, rma::null_ref) == own) return rma::null_ref;
      // A successor swapped itself in behind this node and is about to write its link.
      port_.await(node_[link], rma::differs_from(rma::null_ref));
    }
    if (port_.load(node_[acked]) == 0) {
      side_.complete();  // nothing is pending when we wait (C9)
      port_.await(node_[acked], rma::differs_from(0));
    }
    return port_.load(node_[link]);
  }

  /// Only the words that can have been written.
  void give_back_node(bool has_succ) {
    if (is_last_) port_.store(node_[ticket], 0);
    if (has_pred_) port_.store(node_[passed], 0), port_.store(node_[granted], 0);
    if (has_succ) port_.store(node_[link], rma::null_ref), port_.store(node_[acked], 0);
    me_.give_back(node_);
  }

  rma::participant<Port>& me_;
  Port& port_;
  rma::plain_cell owner_;
  side_access<Port> side_;
  ticket_draw<Port> draw_;
  rma::word group_;         // acquires that share a ticket
  rma::word last_ticket_;   // before they begin again at 0
  drawn mine_{};            // our ticket, or our group's
  bool has_pred_ = false;   // a predecessor in the queue grants
  bool is_member_ = false;  // of a group that another participant began: it enters on the grant
  bool is_last_ = false;    // of its group
  rma::queue_node node_;
};

}  // namespace lockflight::lock
