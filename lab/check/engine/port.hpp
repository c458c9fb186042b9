// The checker's port: it announces every operation to the engine, which decides when it happens.
#pragma once

#include <cstdint>

#include "lab/check/engine/engine.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::check {

class port {
 public:
  static constexpr rma::capability_set capabilities{
      .messages = true, .node_fence = true, .deaths = true, .fabric = "check"};
  static constexpr bool examines_nothing = true;
  /// Deadlines in fewer nanoseconds are a lock's own, inside an acquire.
  static constexpr std::uint64_t shortest_of_acquire = 1'000'000'001;

  port(engine& e, rank_t rank) : engine_(e), rank_(rank) {}
  port(const port&) = delete;
  port& operator=(const port&) = delete;

  [[nodiscard]] rank_t rank() const { return rank_; }
  [[nodiscard]] const rma::topology& machine() const { return engine_.machine(); }
  [[nodiscard]] bool orders_posts() const { return engine_.orders_posts(); }

  // ---- posted ----

  template <class Cell>
  void put(Cell to, word value) {
    engine_.post(rank_, posted_kind::put, number(to), to.home, value, 0, nullptr);
  }
  template <class Cell>
  void get(Cell from, word& result) {
    engine_.post(rank_, posted_kind::get, number(from), from.home, 0, 0, &result);
  }
  void add(rma::nic_cell to, word value) {
    engine_.post(rank_, posted_kind::add, number(to), to.home, value, 0, nullptr);
  }
  void fetch_add(rma::nic_cell at, word value, word& before) {
    engine_.post(rank_, posted_kind::fetch_add, number(at), at.home, value, 0, &before);
  }
  void swap(rma::nic_cell at, word value, word& before) {
    engine_.post(rank_, posted_kind::swap, number(at), at.home, value, 0, &before);
  }
  void compare_swap(rma::nic_cell at, word expected, word desired, word& before) {
    engine_.post(rank_, posted_kind::compare_swap, number(at), at.home, expected, desired, &before);
  }
  void flush(rank_t target) { engine_.flush(rank_, target); }
  void flush() { engine_.flush(rank_, -1); }

  // ---- immediate ----

  template <class Cell>
  [[nodiscard]] word load(Cell from) {
    return engine_.act(rank_, action::load, here(from));
  }
  template <class Cell>
  void store(Cell to, word value) {
    static_assert(Cell::class_of != rma::cell_class::nic, "no store on a nic cell");
    engine_.store(rank_, here(to), value);
  }
  [[nodiscard]] word cpu_fetch_add(rma::cpu_cell at, word value) {
    return rmw(action::cpu_fetch_add, at, value, 0);
  }
  [[nodiscard]] word cpu_swap(rma::cpu_cell at, word value) {
    return rmw(action::cpu_swap, at, value, 0);
  }
  [[nodiscard]] word cpu_compare_swap(rma::cpu_cell at, word expected, word desired) {
    return rmw(action::cpu_compare_swap, at, expected, desired);
  }
  void fence() { engine_.act(rank_, action::fence); }
  void fence_node() { engine_.fence_node(rank_); }

  // ---- waiting ----

  template <class Cell, class Predicate>
  word await(Cell on, Predicate done) {
    return wait(action::await, here(on), erased(done));
  }
  template <class Cell, class Predicate>
  word poll(Cell from, Predicate done, rma::backoff) {
    engine_.before_get(rank_);
    return wait(action::poll, number(from), erased(done));
  }
  void pause(std::uint64_t) {
    engine_.act(rank_, action::pause);
    if (engine_.grant_was_over(rank_)) over_ |= of_grant;
    if (handler_ == nullptr) return;
    for (rma::message got; try_receive(got);) handler_->handle(got);
  }
  // A deadline is over when the search says so, and stays over. A participant has at most one of
  // each kind. Any of them may be over first; of an acquire's and the lock's own inside it, the
  // comparison of the two says that the lock's own is.
  [[nodiscard]] rma::deadline deadline_in(std::uint64_t nanoseconds) {
    const rma::deadline made{nanoseconds >= shortest_of_acquire ? of_acquire : of_lock};
    over_ &= ~made.at;
    return made;
  }
  [[nodiscard]] bool is_over(rma::deadline until) {
    if ((over_ & until.at) == 0 && until.at != of_grant && engine_.act(rank_, action::is_over) != 0)
      note_over(until.at);
    return (over_ & until.at) != 0;
  }
  template <class Cell, class Predicate>
  word await_until(Cell on, Predicate done, rma::deadline until) {
    const word found = wait(action::await_until, here(on), erased(done));
    if (!done(found)) note_over(until.at);
    return found;
  }

  // ---- deaths ----

  [[nodiscard]] word deaths() { return engine_.act(rank_, action::deaths); }
  [[nodiscard]] bool is_dead(rank_t rank) {
    return engine_.act(rank_, action::is_dead, no_cell, 0, 0, {}, rank) != 0;
  }
  void acknowledge_death(rank_t rank) {
    engine_.act(rank_, action::acknowledge_death, no_cell, 0, 0, {}, rank);
  }
  /// A death becomes known by a step of its own.
  void examine(rank_t) {}
  /// Does nothing: all participants learn of a death at once.
  void wake(rank_t) {}
  [[nodiscard]] int participants() const { return machine().ranks(); }
  [[nodiscard]] rank_t participant(int number) const { return number; }
  /// A deadline that the search ends: by a wait or a pause, when no living participant's record
  /// says that it holds, and a participant is stopped.
  [[nodiscard]] rma::deadline grant_deadline() {
    over_ &= ~of_grant;
    return {of_grant};
  }
  [[nodiscard]] rma::deadline earlier(rma::deadline a, rma::deadline b) const {
    return {a.at | b.at};
  }
  template <class Cell, class Predicate>
  word await_or_death(Cell on, Predicate done, const rma::lifeline& line) {
    return wait_for_life(action::await_or_death, on, done, {}, line);
  }
  template <class Cell, class Predicate>
  word await_until_or_death(Cell on, Predicate done, rma::deadline until,
                            const rma::lifeline& line) {
    const bool ends = (until.at & ~of_grant) != 0;
    return wait_for_life(ends ? action::await_until_or_death : action::await_or_death, on, done,
                         until, line);
  }

  /// No call of the contract: waits until all participants have come. Returns the first living one.
  rank_t rendezvous() { return static_cast<rank_t>(wait(action::rendezvous, no_cell, {})); }

  /// No call of the contract: waits until the participant is to come again, which need not happen;
  /// serves meanwhile.
  void idle() { wait(action::idle, no_cell, {}); }

  // ---- messages ----

  void send(rank_t to, std::array<word, 3> body) { engine_.send(rank_, to, body); }
  [[nodiscard]] rma::message receive() {
    engine_.act(rank_, action::receive);
    return *engine_.got(rank_);
  }
  [[nodiscard]] bool try_receive(rma::message& got) {
    engine_.act(rank_, action::try_receive);
    const rma::message* const there = engine_.got(rank_);
    if (there != nullptr) got = *there;
    return there != nullptr;
  }
  void serve_with(rma::message_handler* handler) {
    handler_ = handler;
    engine_.serve(rank_, handler != nullptr);
  }

 protected:
  // The sources of a deadline, a bit each: the earliest of several deadlines has the bits of all.
  static constexpr std::uint64_t of_lock = 1, of_acquire = 2, of_grant = 4;

 private:
  void note_over(std::uint64_t kinds) {
    over_ |= kinds;
    if ((kinds & of_acquire) != 0) engine_.begin_giving_up(rank_);
  }

  word rmw(action what, rma::cpu_cell at, word a, word b) {
    const word before = engine_.act(rank_, what, here(at), a, b);
    engine_.after_rmw(rank_);
    return before;
  }

  template <class Cell, class Predicate>
  word wait_for_life(action what, Cell on, const Predicate& done, rma::deadline until,
                     const rma::lifeline& line) {
    const rank_t withdraws = (until.at & of_grant) != 0 ? engine::with_grant : -1;
    const word found = engine_.act(rank_, what, here(on), line.value, line.deaths, erased(done),
                                   withdraws, here(line.cell));
    if (engine_.time_was_over(rank_)) note_over(until.at & ~of_grant);
    if (engine_.grant_was_over(rank_)) over_ |= of_grant;
    return found;
  }

  word wait(action what, cell_id cell, predicate test) {
    while (true) {
      const word answer = engine_.act(rank_, what, cell, 0, 0, test);
      const rma::message* const got = engine_.got(rank_);
      if (got == nullptr) return answer;
      handler_->handle(rma::message(*got));
    }
  }

  template <class Predicate>
  [[nodiscard]] static predicate erased(const Predicate& done) {
    return {[](const void* on, word now) { return (*static_cast<const Predicate*>(on))(now); },
            &done};
  }

  template <class Cell>
  [[nodiscard]] cell_id number(Cell c) {
    return engine_.number(c.home, c.index);
  }
  template <class Cell>
  [[nodiscard]] cell_id here(Cell c) {
    if (c.home >= 0 && c.home < machine().ranks() && !machine().same_node(c.home, rank_))
      engine_.fail("contract", "rank " + std::to_string(rank_) + " reaches immediately into rank " +
                                   std::to_string(c.home) + ", which is on another node");
    return number(c);
  }

  engine& engine_;
  rank_t rank_;
  rma::message_handler* handler_ = nullptr;
  std::uint64_t over_ = 0;  // of which kinds the deadline is over
};

static_assert(rma::messaging_port<port> && rma::mortal_port<port>);

}  // namespace lockflight::check
