// The contract between locks and fabrics. A port is an object that a participant holds; everything
// that a lock does to shared memory, waiting included, is a call on it. docs/contract.md numbers
// the clauses, which code and tests cite (C1, C2, …).
//
// Cost in network operations: a posted operation is one, whatever its target; an immediate one is
// none.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lockflight/rma/backoff.hpp"
#include "lockflight/rma/cell.hpp"
#include "lockflight/rma/cxx20.hpp"
#include "lockflight/rma/layout.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::rma {

/// The capabilities of a fabric beyond the contract's minimum. A lock may use one with
/// `if constexpr (Port::capabilities.x)`, never assume it (C30).
struct capability_set {
  bool uniform_rmw = false;    ///< cpu and nic RMWs are atomic with each other
  bool ordered_posts = false;  ///< orders_posts() is true, on every machine
  bool messages = false;       ///< send, receive, try_receive and serve_with exist
  bool native_memory = false;  ///< native_address exists: cells are ordinary memory of this process
  bool node_fence = false;     ///< fence_node exists
  bool losses = false;         ///< may_lose, is_lost and never_received exist
  bool target_takes_part = false;  ///< operations of others may need this participant's help (C44)
  bool deaths = false;             ///< a mortal_port: participants die, each by itself (C45)
  bool interrupts = false;  ///< the caller's program may end a wait: then any deadline is over,
                            ///< also {UINT64_MAX} (C45)
  std::string_view fabric = "";
};

/// A short two-sided message (C27).
struct message {
  rank_t from = -1;
  std::array<word, 3> body{};

  friend constexpr bool operator==(const message&, const message&) = default;
};

/// True if posted operations to one rank take effect in the order in which they are posted (C30). A
/// fabric whose machines differ in that says so at run time: its port has a member of this name.
template <class Port>
[[nodiscard]] constexpr bool orders_posts(const Port& p) {
  if constexpr (requires { p.orders_posts(); })
    return p.orders_posts();
  else
    return Port::capabilities.ordered_posts;
}

/// True if participants of this node share cores, as far as the fabric knows: a waiter's
/// predecessor or successor may then not be running. A lock may use this to be faster, never to
/// behave differently.
template <class Port>
[[nodiscard]] constexpr bool shares_cores(const Port& p) {
  if constexpr (requires { p.shares_cores(); })
    return p.shares_cores();
  else
    return false;
}

/// A point in time on the clock of the port that made it, at which the participant's wait ends
/// (C38).
struct deadline {
  std::uint64_t at = 0;
};

/// In place of a deadline: the participant waits until it has what it waits for.
struct forever {};

/// Stands in a concept for "any predicate on a word".
struct any_predicate {
  constexpr bool operator()(word) const { return true; }
};

/// The operations of every fabric. Posted ones take effect at any moment between the call and the
/// flush that completes them, in any order (C5, C6); their results are valid after that flush.
/// Immediate operations reach only cells of the own node.
template <class P>
concept port =
    requires(P& p, const P& cp, cpu_cell cc, nic_cell nc, plain_cell pc, word value, word& result,
             rank_t rank, backoff back_off, std::uint64_t nanoseconds, deadline until) {
      { P::capabilities } -> std::convertible_to<capability_set>;
      { cp.rank() } -> std::same_as<rank_t>;
      { cp.machine() } -> std::same_as<const topology&>;

      // Posted: complete at flush (C5 to C9).
      p.put(cc, value), p.put(nc, value), p.put(pc, value);
      p.get(cc, result), p.get(nc, result), p.get(pc, result);
      p.add(nc, value);
      p.fetch_add(nc, value, result);
      p.swap(nc, value, result);
      p.compare_swap(nc, value, value, result);  // (cell, expected, desired, before)
      p.flush(rank);
      p.flush();

      // Immediate: cells of the own node (C10 to C15). There is no store on a nic cell: a NIC's
      // read-modify-write could swallow it.
      { p.load(cc) } -> std::same_as<word>;
      { p.load(nc) } -> std::same_as<word>;
      { p.load(pc) } -> std::same_as<word>;
      p.store(cc, value), p.store(pc, value);
      { p.cpu_fetch_add(cc, value) } -> std::same_as<word>;
      { p.cpu_swap(cc, value) } -> std::same_as<word>;
      { p.cpu_compare_swap(cc, value, value) } -> std::same_as<word>;  // (cell, expected, desired)
      p.fence();

      // Waiting (C16 to C19).
      { p.await(cc, any_predicate{}) } -> std::same_as<word>;
      { p.await(nc, any_predicate{}) } -> std::same_as<word>;
      { p.await(pc, any_predicate{}) } -> std::same_as<word>;
      { p.poll(nc, any_predicate{}, back_off) } -> std::same_as<word>;
      { p.poll(pc, any_predicate{}, back_off) } -> std::same_as<word>;
      p.pause(nanoseconds);

      // Waiting until a deadline (C38).
      { p.deadline_in(nanoseconds) } -> std::same_as<deadline>;
      { p.is_over(until) } -> std::same_as<bool>;
      { p.await_until(cc, any_predicate{}, until) } -> std::same_as<word>;
      { p.await_until(nc, any_predicate{}, until) } -> std::same_as<word>;
      { p.await_until(pc, any_predicate{}, until) } -> std::same_as<word>;
    };

/// Serves messages that arrive while their receiver waits for something else (C37).
class message_handler {
 public:
  /// Called on the receiver's thread. It may call every operation of the port that does not wait.
  virtual void handle(const message&) = 0;
  /// Called in the same way when a rank is lost, after all messages from it (C39).
  virtual void lost(rank_t) {}

 protected:
  ~message_handler() = default;
};

/// A port with two-sided messages (C27 to C29, C37).
template <class P>
concept messaging_port =
    port<P> && P::capabilities.messages &&
    requires(P& p, rank_t to, std::array<word, 3> body, message& got, message_handler* handler) {
      p.send(to, body);
      { p.receive() } -> std::same_as<message>;
      { p.try_receive(got) } -> std::same_as<bool>;
      p.serve_with(handler);
    };

/// A port whose run may go on without a lost rank (C39).
template <class P>
concept losing_port = messaging_port<P> && P::capabilities.losses &&
                      requires(P& p, const P& cp, rank_t rank, const std::array<word, 3>& body) {
                        { cp.may_lose() } -> std::same_as<bool>;
                        { p.is_lost(rank) } -> std::same_as<bool>;
                        { cp.never_received(rank, body) } -> std::same_as<bool>;
                      };

/// A port whose participant can make every participant of its node pass a fence (C40).
template <class P>
concept node_fencing_port =
    port<P> && P::capabilities.node_fence && requires(P& p) { p.fence_node(); };

/// When a waiter examines the other users of a lock: the first time after first_examination_ns.
/// After that, the watcher does so every watcher_examines_every_ns and each other waiter every
/// others_examine_every_ns.
constexpr std::uint64_t first_examination_ns = 4'000'000;
constexpr std::uint64_t watcher_examines_every_ns = 40'000'000;
constexpr std::uint64_t others_examine_every_ns = 1'000'000'000;

/// The reasons for which a wait ends besides the condition that it waits for (C45).
struct lifeline {
  plain_cell cell;       ///< of the own node
  word value = 0;        ///< the wait also ends when that cell holds another value …
  word deaths = 0;       ///< … or deaths() is another number …
  bool watches = false;  ///< … and now and then for no reason, so that the caller can examine()
                         ///< others: about every watcher_examines_every_ns if this is set, else
                         ///< about every others_examine_every_ns
  bool relies = false;   ///< or, instead of that, when the hold that it relies on may have ended
};

/// A port whose participants may die or stop, each by itself, while the others go on (C45, C46).
template <class P>
concept mortal_port =
    port<P> && P::capabilities.deaths &&
    requires(P& p, plain_cell c, rank_t rank, int number, deadline until, const lifeline& line) {
      { p.deaths() } -> std::same_as<word>;
      { p.is_dead(rank) } -> std::same_as<bool>;
      p.examine(rank);
      p.acknowledge_death(rank);
      p.wake(rank);
      { p.participants() } -> std::same_as<int>;
      { p.participant(number) } -> std::same_as<rank_t>;
      { p.grant_deadline() } -> std::same_as<deadline>;
      { p.await_or_death(c, any_predicate{}, line) } -> std::same_as<word>;
      { p.await_until_or_death(c, any_predicate{}, until, line) } -> std::same_as<word>;
    };

/// True if this port's examine() and wake() do nothing, since deaths become known without them, and
/// its clock is read without cost. The checker's port is one. Scans that only prepare for these
/// calls can be left out.
template <class Port>
inline constexpr bool examines_nothing = [] {
  if constexpr (requires { Port::examines_nothing; })
    return Port::examines_nothing;
  else
    return false;
}();

/// True if locks use the words of rank 0 only, whichever home they request.
template <class Port>
inline constexpr bool words_at_home_only = [] {
  if constexpr (requires { Port::words_at_home_only; })
    return Port::words_at_home_only;
  else
    return false;
}();

/// Thrown by a participant that cannot go on without a lost rank: ends the run in that rank's name.
struct rank_needed : std::runtime_error {
  rank_needed(rank_t r, const std::string& how) : std::runtime_error(how), rank(r) {}
  rank_t rank;
};

/// A port whose cells are ordinary memory of this process (only the baselines use it).
template <class P>
concept native_port = port<P> && P::capabilities.native_memory && requires(P& p, plain_cell c) {
  { p.native_address(c) } -> std::same_as<void*>;
};

// Posted operations that are needed at once: post, flush, return the result. One round trip each.

template <port Port, class Cell>
[[nodiscard]] word get_now(Port& p, Cell from) {
  word result = 0;
  p.get(from, result);
  p.flush(from.home);
  return result;
}

template <port Port>
[[nodiscard]] word fetch_add_now(Port& p, nic_cell at, word value) {
  word before = 0;
  p.fetch_add(at, value, before);
  p.flush(at.home);
  return before;
}

template <port Port>
[[nodiscard]] word swap_now(Port& p, nic_cell at, word value) {
  word before = 0;
  p.swap(at, value, before);
  p.flush(at.home);
  return before;
}

/// Returns the value before: the cell holds `desired` now if that value is `expected`.
template <port Port>
[[nodiscard]] word compare_swap_now(Port& p, nic_cell at, word expected, word desired) {
  word before = 0;
  p.compare_swap(at, expected, desired, before);
  p.flush(at.home);
  return before;
}

/// A cell that a lock uses often, together with what the port looked up about it once (C41). It is
/// used like the cell that it was made from; only its type differs. On a port that looks up nothing
/// it is the cell itself.
template <class Port, class Cell>
[[nodiscard]] auto resolve(Port& p, Cell c) {
  if constexpr (requires { p.resolve(c); })
    return p.resolve(c);
  else
    return c;
}
template <class Port, class Cell>
using resolved = decltype(resolve(std::declval<Port&>(), std::declval<Cell>()));

template <port Port, class Cell>
void put_now(Port& p, Cell to, word value) {
  p.put(to, value);
  p.flush(to.home);
}

/// Gets `first` and the cells at the same place of the cache lines after it, one for each element
/// of `results` (C42). That is one get for each, or one network operation for all where the fabric
/// has one.
template <class Port, class Cell>
void get_lines(Port& p, Cell first, std::span<word> results) {
  if (results.empty()) return;
  if constexpr (requires { p.get_lines(first, results); }) {
    p.get_lines(first, results);
  } else {
    for (word& result : results) {
      p.get(first, result);
      first = first + line_words;
    }
  }
}

/// Loads each of these cells of the own node, in any order (C43). Where other cores have the cache
/// lines their transfers overlap. `results` has as many elements as `from`.
template <class Port, class Cell>
void load_each(Port& p, std::span<const Cell> from, std::span<word> results) {
  if constexpr (requires { p.load_each(from, results); }) {
    p.load_each(from, results);
  } else {
    for (std::size_t i = 0; i < from.size(); ++i) results[i] = p.load(from[i]);
  }
}

/// Predicates for await and poll.
[[nodiscard]] constexpr auto differs_from(word unwanted) {
  return [unwanted](word now) { return now != unwanted; };
}
[[nodiscard]] constexpr auto equals(word wanted) {
  return [wanted](word now) { return now == wanted; };
}

/// `poll` for fabrics that have no better way: get, test, pause, repeat.
template <class Port, class Cell, class Predicate>
word poll_by_get(Port& p, Cell from, Predicate done, backoff back_off) {
  while (true) {
    word now = 0;
    p.get(from, now);
    p.flush(from.home);
    if (done(now)) return now;
    p.pause(back_off.next());
  }
}

/// `await_until` for fabrics that have no better way: load, test, pause, repeat.
template <class Port, class Cell, class Predicate>
word await_by_polling(Port& p, Cell on, Predicate done, deadline until) {
  for (backoff b(50, 2'000);; p.pause(b.next())) {
    const word now = p.load(on);
    if (done(now) || p.is_over(until)) return now;
  }
}

// For code that serves both runs that may lose a rank and runs that may not.

[[nodiscard]] constexpr bool may_lose(const auto& port) {
  if constexpr (losing_port<std::remove_cvref_t<decltype(port)>>)
    return port.may_lose();
  else
    return false;
}
[[nodiscard]] constexpr bool is_lost(auto& port, rank_t rank) {
  if constexpr (losing_port<std::remove_cvref_t<decltype(port)>>)
    return port.is_lost(rank);
  else
    return false;
}

/// `await` for something that `rank` does. It also returns when that rank is lost.
template <port Port, class Cell, class Predicate>
word await_unless_lost(Port& p, Cell on, Predicate done, rank_t rank) {
  // Between two waits the caller asks whether the rank is lost. It may learn of the loss late.
  constexpr std::uint64_t between_checks_ns = 20'000'000;
  while (true) {
    const word now = p.await_until(on, done, p.deadline_in(between_checks_ns));
    if (done(now) || is_lost(p, rank)) return now;
  }
}

/// For callers that run only where `capabilities.node_fence` is true.
void fence_node(auto& port) {
  if constexpr (node_fencing_port<std::remove_cvref_t<decltype(port)>>) port.fence_node();
}

// For code that serves both waits without an end and waits until a deadline.

/// The first of two moments on one port's clock.
[[nodiscard]] constexpr deadline earlier(forever, deadline b) { return b; }
[[nodiscard]] constexpr deadline earlier(deadline a, deadline b) { return a.at < b.at ? a : b; }

[[nodiscard]] constexpr bool is_over(auto&, forever) { return false; }
[[nodiscard]] bool is_over(auto& port, deadline until) { return port.is_over(until); }

/// The earlier one. A port whose deadlines are not times of a clock has a function of its own.
template <class Port>
[[nodiscard]] deadline earlier(Port& port, deadline a, deadline b) {
  if constexpr (requires { port.earlier(a, b); })
    return port.earlier(a, b);
  else
    return a.at < b.at ? a : b;
}

/// True if the predicate held before the deadline; `seen` is the value that was read last.
template <port Port, class Cell, class Predicate>
bool await(Port& p, Cell on, Predicate done, forever, word& seen) {
  seen = p.await(on, done);
  return true;
}
template <port Port, class Cell, class Predicate>
bool await(Port& p, Cell on, Predicate done, deadline until, word& seen) {
  seen = p.await_until(on, done, until);
  return done(seen);
}

}  // namespace lockflight::rma
