// What the writer that holds flight does with flight-rw's gates and its readers' counts, those of
// all nodes: it puts the gates and gets the counts, all of them at once, or has deputies do that in
// the branches of a tree (flight_rw/gate_tree.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "lockflight/lock/flight_rw/deputies.hpp"
#include "lockflight/lock/flight_rw/directory.hpp"
#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/gate_tree.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/lock/flight_rw/parameters.hpp"
#include "lockflight/lock/flight_rw/reader_scan.hpp"
#include "lockflight/lock/flight_rw/turn_policy.hpp"
#include "lockflight/lock/flight_rw/writers_turn.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class gate_keeper {
 public:
  gate_keeper(rma::participant<Port>& me, const reader_cells& where,
              const flight_rw_parameters& set)
      : me_(me),
        port_(me.port()),
        where_(where),
        gate_(where.gate_of(me.machine(), me.rank())),
        directory_(me, where),
        looks_(me, where),
        deputies_(me, where, set.patience) {
    const int most = where.several() ? std::max(where.ranks_of_a_cell, where.ranks_together)
                                     : me.machine().largest_node();
    if (most > static_cast<int>(reader_count::most))
      throw std::invalid_argument("flight-rw counts at most 4095 ranks in a cell (ranks_per_cell)");
  }

  /// For who is about to take flight, with its look at the home: 1 get if there is a directory.
  void post_look() { directory_.post(); }
  /// For who has got flight. The other calls are for its holder.
  void start(std::uint16_t note, bool has_posted) {
    has_seen_all_ = false;
    directory_.start(note, has_posted);
  }
  /// What the gates say; after `start` that may be no more than whether they are open.
  [[nodiscard]] gate look() { return directory_.now(); }
  /// The same as it is in memory. May cost a round trip, where there is a directory.
  [[nodiscard]] gate know(gate found) {
    if (!directory_.has_more()) return found;
    directory_.know();
    return directory_.now();
  }

  /// 1 round trip, 1 put for each other node whose gate it is. Complete at the return, since nobody
  /// waits for what we have not flushed.
  void set(gate to) { set(to, directory_.nodes()); }
  /// Begins to close them: start_looking and await_readers do the rest. 1 round trip; as `set`, or
  /// with a tree 1 put for each other branch, and for each other node of the own one; before that,
  /// if there is a directory, one or two more, 1 put and 1 get.
  void close(gate now) {
    directory_.announce_closing();
    set_by_tree(now.as(gate::state::closed));
  }
  /// Whether nobody is in whom that would wait for, at open gates; then `set` may close them. Costs
  /// what `close` does before, a look, and if somebody is in 1 put.
  [[nodiscard]] bool may_close() {
    directory_.announce_closing();
    start_looking();
    if (readers_are_gone()) return true;
    if (directory_.set(look())) port_.flush();
    return false;
  }
  /// Opens them. As `close`, and with a tree the round trips until the deputies have opened theirs.
  /// If more nodes are listed than the directory has pointers, those where nobody reads or waits
  /// are unlisted: 1 add, and K gets unless we have closed the gates; beyond `broadcast` all are
  /// opened.
  void open(gate next) {
    if (next.few() && directory_.broadcasts())
      next = next.of_all_nodes();
    else if (next.few() && !directory_.has_room_for(directory_.nodes()))
      return set(next, has_seen_all_ ? seen() : seen_now());
    set_by_tree(next);
    for (rma::backoff b = tree().between_looks(); deputies_.post(); port_.pause(b.next())) {
      port_.flush();
      static_cast<void>(settle());
      if (!deputies_.have_some()) return;
    }
  }
  /// Opens gates that are being closed. For the same epoch: those who parked before it may not have
  /// left, and two are told apart.
  void reopen() {
    deputies_.dismiss_all();
    set(look().as(gate::state::open).with_quiet(0));
  }
  /// Opens our gate at least: if there is a directory that one and those in it, while they are few.
  void open_here() {
    const gate now = look();
    const bool are_open = now.what() == gate::state::open;
    if (are_open && (!now.few() || directory_.is_own_open())) return;
    directory_.list_own();
    has_seen_all_ = false;  // our node, with us
    // Anew, since to list may have told more.
    if (!are_open) return open(opened(look()));
    if (!directory_.is_own_open()) static_cast<void>(post_gate(gate_, know(now)));
  }
  void open_all() {
    const gate now = look();
    if (now.what() != gate::state::open || now.few()) open(opened(now).of_all_nodes());
  }
  /// After a look that is quiet leaves those gates idle where it found nobody. Costs what `set`
  /// does. Returns the note for the next writer.
  [[nodiscard]] std::uint16_t leave_idle(gate now) {
    const bool all = seen() == 0;
    const gate next = all ? now.as(gate::state::idle) : now.next_phase().with_quiet(0);
    set(directory_.is_kept() ? next.of_few_nodes() : next, seen());
    return all ? writers_turn::are_idle : writers_turn::is_over;
  }

  /// The looks at the counts begin.
  void start_looking() {
    const gate now = know(look());
    has_seen_all_ = false;
    // A reader that the counts do not show has yet to see the gate closed: by our fence (C13) and
    // its atomic (C14), or, if it does without, by the fence that we bring it to (C40).
    if (now.biased() && now.what() == gate::state::closed)
      rma::fence_node(port_);
    else
      port_.fence();
    looks_.list(0, me_.machine().nodes());
    looks_.start(now, [this](int node) { return directory_.has(node); });
    deputies_.for_each_left([this](int b, const auto&) {
      looks_.leave_out(tree().first_node(b), tree().past_nodes(b));
    });
  }

  /// Whether no reader is left. 1 round trip, 1 get for each other node that had readers
  /// at the last look, or for each branch that is left to a deputy.
  [[nodiscard]] bool readers_are_gone() {
    const bool elsewhere = gone_elsewhere();
    return looks_.gone_here() && elsewhere;
  }

  /// Whether nobody reads or waits to, or on few nodes: a look at the own node, and unless that
  /// tells 1 round trip, 1 get for each other node.
  [[nodiscard]] bool is_quiet_now() {
    start_looking();
    static_cast<void>(looks_.gone_here());
    if (is_quiet()) static_cast<void>(gone_elsewhere());
    return is_quiet();
  }

  /// Until no reader is left; false if time was over first.
  template <class Until>
  [[nodiscard]] bool await_readers(Until until) {
    for (rma::backoff b = tree().between_looks(); !gone_elsewhere(); port_.pause(b.next()))
      if (rma::is_over(port_, until)) return false;
    return looks_.await_here(until);
  }

  /// Whether no look since start_looking has found a reader, on its way out or waiting; or, at
  /// gates of all nodes, readers of no more nodes than there are pointers.
  [[nodiscard]] bool is_quiet() {
    return seen() == 0 || (directory_.has_room_for(seen()) && !look().few());
  }

  /// Of a turn of so many writers. Who waits is told by up to 4 cells of the own node, if asked.
  [[nodiscard]] ended_turn ended(rma::word writers, const turn_policy& by) {
    const gate now = look();
    looks_.list(0, me_.machine().nodes());
    ended_turn seen{.writers = writers, .cells = looks_.used_cells(now, false)};
    if (!by.asks_who_waits(now, seen)) return seen;
    rma::word looks = 0;
    looks_.for_some_here(now, [&](rma::word counts) {
      seen.waiting += reader_count::sum(counts);
      ++looks;
    });
    seen.waiting = seen.waiting * seen.cells / looks;
    return seen;
  }

  /// Stays away while the gates are open and somebody reads here, but not for longer than that.
  template <class Until>
  void let_readers_come(Until until, std::uint64_t nanoseconds) {
    if (nanoseconds == 0) return;
    const auto turn = port_.deadline_in(nanoseconds);
    while (somebody_reads_here() && !rma::is_over(port_, turn) && !rma::is_over(port_, until))
      port_.pause(nanoseconds / looks_a_turn);
  }

 private:
  static constexpr std::uint64_t looks_a_turn = 8;

  [[nodiscard]] node_set seen() const { return looks_.seen(); }
  [[nodiscard]] node_set seen_now() {
    start_looking();
    static_cast<void>(readers_are_gone());
    return seen();
  }
  [[nodiscard]] gate opened(gate found) {
    const gate now = know(found);
    return now.what() == gate::state::open ? now : now.next_phase().with_quiet(0);
  }

  // At open gates, as far as up to 4 cells of the own node tell.
  [[nodiscard]] bool somebody_reads_here() {
    const gate now = look();
    if (now.what() != gate::state::open || now.few()) return false;
    looks_.list(0, me_.machine().nodes());
    rma::word active = 0;
    looks_.for_some_here(
        now, [&](rma::word counts) { active += reader_count::of(reader_count::active, counts); });
    return active > 0;
  }

  [[nodiscard]] bool gone_elsewhere() {
    while (true) {
      const bool posted = looks_.post();
      if (deputies_.post() || posted) port_.flush();
      // Before branches are taken over, where nobody has looked at the cells yet.
      const bool gone = looks_.gone_elsewhere();
      if (settle()) continue;
      has_seen_all_ = true;
      return gone && !deputies_.have_some();
    }
  }

  [[nodiscard]] const gate_tree& tree() const { return where_.tree; }

  // The gates of these nodes and the home's say `to` then, or those of all, and those that are in
  // use now and not among them are unlisted: nobody enters there.
  void set(gate to, node_set nodes) {
    const bool some_stay = directory_.is_kept();  // as they are
    const gate before = some_stay ? look() : gate{};
    const gate unlisted = before.as(gate::state::unlisted).of_few_nodes();
    const node_set had = before.few() ? directory_.nodes() : all_nodes;
    if (to.few()) directory_.list_only(nodes);
    const node_set has = to.few() ? directory_.nodes() : all_nodes;
    bool posted = false;
    where_.for_each_gate(me_.machine(), 0, me_.machine().nodes(), [&](int node, rma::cpu_cell of) {
      const bool was_there = lock::has(had, node);
      const bool stays = lock::has(has, node);
      if (!some_stay || (stays ? !was_there || to != before : was_there))
        posted = post_gate(of, stays ? to : unlisted) || posted;
    });
    posted = directory_.set(to) || posted;
    if (posted) port_.flush();
  }
  // To be flushed if it says so.
  [[nodiscard]] bool post_gate(rma::cpu_cell of, gate to) {
    const rma::word bits = to.without_deputy().bits() ^ where_.zero_of_gate(of.home);
    if (of == gate_)
      port_.store(of, bits);
    else
      port_.put(of, bits);
    return of != gate_;
  }
  void post_gates(gate to, int first, int past) {
    where_.for_each_gate(me_.machine(), first, past,
                         [&](int, rma::cpu_cell of) { static_cast<void>(post_gate(of, to)); });
  }
  void set_by_tree(gate to) {
    if (!tree().grows()) return set(to);
    const gate next = to.without_deputy().with_next_wish();
    const int own = deputies_.own_branch();
    deputies_.wish_for(next);
    post_gates(next, tree().first_node(own), tree().past_nodes(own));
    port_.flush();
  }
  // After a look at what deputies have done. Whether there is more to look at now.
  [[nodiscard]] bool settle() {
    if (!deputies_.have_some()) return false;
    bool has_taken_over = false;
    deputies_.settle(
        [&](int b) {
          const int past = tree().past_nodes(b);
          post_gates(look(), tree().first_node(b) + 1, past);
          looks_.take_in(tree().first_node(b), past);
          has_taken_over = true;
        },
        [this] { looks_.has_seen_some(); });
    if (has_taken_over) port_.flush();
    return has_taken_over;
  }

  rma::participant<Port>& me_;
  Port& port_;
  reader_cells where_;
  rma::cpu_cell gate_;  // of our node
  gate_directory<Port> directory_;
  reader_looks<Port> looks_;
  deputies<Port> deputies_;
  bool has_seen_all_ = false;  // who is at the listed nodes, since we have flight
};

}  // namespace lockflight::lock
