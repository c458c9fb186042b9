// How the participants of two sides draw tickets: those on the home's node with its CPU, and the
// others through the network. Peterson's algorithm between the heads of the two sides, which needs
// only reads and writes, lets one of them at a time draw.
//
// Source: FARLock (OSDI 2026), as farlock.hpp says. The head of a side reads the other side's flag
// first and becomes the victim only if that is set, as in alock.
//
// Invariants: while a side's flag is up, one participant of that side is about to draw or to end
// the group that has the ticket. The flag falls before the side has another head. owner <= next.
#pragma once

#include "lockflight/lock/part/side_access.hpp"
#include "lockflight/rma/layout.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::lock {

template <rma::port Port>
class ticket_draw {
 public:
  struct cells {
    rma::plain_cell local_flag, remote_flag;  // 1 while that side draws
    rma::plain_cell victim;                   // the side that lets the other one draw first
    rma::plain_cell next;                     // the next ticket
    rma::plain_cell owner;                    // the ticket whose turn it is

    static cells from(rma::plain_cell first) {
      return {first, first + 1, first + 2, first + 3, first + 4};
    }
  };
  /// The result of a head's draw.
  struct drawn {
    rma::word ticket;
    bool is_turn;  ///< the lock is the owner's until it is released
  };

  ticket_draw(Port& p, const cells& where, const side_access<Port>& side)
      : port_(p), cells_(where), local_(side.is_local()), side_(side) {}

  /// Draws a ticket. Only the head of our side may call this.
  [[nodiscard]] drawn draw() {
    drawn found{};
    if (raise_flag(found)) return found;
    give_way();
    for (rma::backoff b = poll_schedule(); !may_draw();) port_.pause(b.next());
    return read();
  }

  /// Raises our flag. Returns whether the other side's is down: then `found` is the next ticket.
  /// The other head reads our flag after it has raised its own, and becomes the victim.
  [[nodiscard]] bool raise_flag(drawn& found) {
    side_.post(local_ ? cells_.local_flag : cells_.remote_flag, 1);
    if (local_) {
      port_.fence();  // the other flag is read after it (C13)
      if (port_.load(cells_.remote_flag) != 0) return false;
      found = read();
      return true;
    }
    rma::word other = 0;
    side_.order(cells_.owner.home);
    port_.get(cells_.local_flag, other);
    if (rma::orders_posts(port_)) {
      found = read();  // in the same round trip, after the flag; it counts if the flag was down
      return other == 0;
    }
    port_.flush(cells_.owner.home);
    if (other == 0) found = read();
    return other == 0;
  }

  /// Our side becomes the victim.
  void give_way() {
    side_.post(cells_.victim, local_ ? local_side : remote_side);
    side_.complete();
    if (local_) port_.fence();  // the reads come after it (C13)
  }

  /// The ticket is taken: from now on the other head may draw, or the next one of ours.
  void end(rma::word next_ticket) {
    side_.post(cells_.next, next_ticket);
    side_.order(cells_.owner.home);  // the next one to draw reads it
    lower_flag();
  }

  void lower_flag() {
    side_.post(local_ ? cells_.local_flag : cells_.remote_flag, 0);
    side_.complete();
  }

  void await_turn(rma::word ticket) {
    if (local_)
      port_.await(cells_.owner, rma::equals(ticket));
    else
      port_.poll(cells_.owner, rma::equals(ticket), poll_schedule());
  }

 private:
  // Values of `victim`. Zeroed memory names no side.
  static constexpr rma::word local_side = 1;
  static constexpr rma::word remote_side = 2;

  /// A poll costs two loads on the home's node, and a round trip from others.
  [[nodiscard]] rma::backoff poll_schedule() const {
    return local_ ? rma::backoff::none() : rma::backoff(500, 8'000);
  }

  /// True if the other side does not draw, or is the victim. Each condition alone suffices, so the
  /// order of the two reads does not matter.
  [[nodiscard]] bool may_draw() {
    if (local_)
      return port_.load(cells_.remote_flag) == 0 || port_.load(cells_.victim) != local_side;
    rma::word flag = 0;
    rma::word victim = 0;
    port_.get(cells_.local_flag, flag);
    port_.get(cells_.victim, victim);
    port_.flush(cells_.owner.home);
    return flag == 0 || victim != remote_side;
  }

  [[nodiscard]] drawn read() {
    rma::word next = 0;
    rma::word owner = 0;
    if (local_) {
      next = port_.load(cells_.next);
      owner = port_.load(cells_.owner);
    } else {
      port_.get(cells_.next, next);
      port_.get(cells_.owner, owner);
      port_.flush(cells_.owner.home);
    }
    return {next, next == owner};
  }

  Port& port_;
  cells cells_;
  bool local_;  // which side we are on
  side_access<Port> side_;
};

}  // namespace lockflight::lock
