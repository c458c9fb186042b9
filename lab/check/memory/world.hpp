// The state that the checker explores: memory, operations under way, and the next action of each
// fiber.
//
// Everything here is plain data of fixed size, so that a moment can be copied and returned to. The
// rest of the state is on the fibers' stacks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "lockflight/rma/cell.hpp"

namespace lockflight::check {

using rma::rank_t;
using rma::word;

constexpr int most_fibers = 8;
constexpr int most_cells = 2048;  ///< that are touched in one search, and an inbox for each rank
constexpr int most_posted = 24;   ///< operations of one participant under way
constexpr int most_buffered = 8;  ///< stores of one participant that others do not see yet

/// A search needs more than the checker has room for. No fault of the lock under test, which does
/// not meet this exception.
class limit_exceeded : public std::length_error {
 public:
  explicit limit_exceeded(const std::string& limit)
      : std::length_error("the checker has room for at most " + limit) {}
};

/// A cell by its number in the search: cells are numbered as they are first touched.
using cell_id = std::uint16_t;
constexpr cell_id no_cell = UINT16_MAX;

/// The inbox of a rank, where a memory has inboxes among its cells.
[[nodiscard]] constexpr cell_id inbox_of(rank_t rank) {
  return static_cast<cell_id>(most_cells - 1 - rank);
}

enum class posted_kind : std::uint8_t {
  put,
  get,
  add,
  fetch_add,
  swap,
  compare_swap,
  message,
  fence
};

[[nodiscard]] constexpr bool is_rmw(posted_kind kind) {
  return kind == posted_kind::add || kind == posted_kind::fetch_add || kind == posted_kind::swap ||
         kind == posted_kind::compare_swap;
}

/// A posted operation between its call and the flush that completes it; or a message, its number in
/// `a`, between sending and its arrival in the inbox `cell`, for which no flush waits; or a fence
/// that another participant must pass, for which fence_node alone waits.
struct posted {
  posted_kind kind;
  bool took_effect;
  bool half;           ///< a RMW that has read and not yet written (without report_mixed only)
  std::uint8_t after;  ///< stores of the participant that must be visible first
  std::uint8_t view;   ///< the view of the participant, by the memory's number; 0: nothing
  cell_id cell;
  rank_t target;
  word a;
  word b;
  word read;     ///< the value that the operation read, delivered at the flush
  word* result;  ///< where the participant wants it; null if nowhere
};

/// The value of a result until the flush: a participant that reads it too early breaks a rule.
constexpr word not_yet = 0xbad0bad0bad0bad0u;

/// A store that is not visible to others yet.
struct buffered {
  cell_id cell;
  word value;
};

/// The next action of a fiber; it happens when the fiber is scheduled.
enum class action : std::uint8_t {
  start,
  load,
  store,  ///< only where stores are not buffered
  cpu_fetch_add,
  cpu_swap,
  cpu_compare_swap,
  fence,
  fence_node,
  await,
  await_until,
  await_or_death,        ///< also ends when the lifeline has changed, which is in `line`, `a`, `b`
  await_until_or_death,  ///< (cell, value, deaths)
  is_over,               ///< reads the clock: the deadline may be over or not
  poll,
  pause,
  receive,
  try_receive,
  flush,
  make_room,   ///< waits until the store buffer has room
  post,        ///< only when effects are not delayed: posts and takes effect at once
  critical,    ///< is in the critical section
  rendezvous,  ///< waits until all participants have come
  idle,        ///< is about to come again, or never (model::endless)
  deaths,
  is_dead,            ///< of `target`
  acknowledge_death,  ///< `target`
  finished,
  stopped,
  dead,
};

/// A predicate of await or poll. It lies on the fiber's stack, which does not move.
struct predicate {
  bool (*test)(const void*, word) = nullptr;
  const void* on = nullptr;

  [[nodiscard]] bool operator()(word now) const { return test(on, now); }
};

/// The state of a participant, apart from its stack.
struct fiber_state {
  std::uint64_t history = 0;  ///< hash of all results that it got, and so of where it is
  action next = action::start;
  cell_id cell = no_cell;
  cell_id line = no_cell;  ///< the lifeline's cell
  rank_t target = -1;      ///< of a flush; -1 all; of a wait: whether it has a grant's deadline
  word a = 0;
  word b = 0;
  predicate test;
  word answer = 0;              ///< the result of the action
  word got = 0;                 ///< the number of the message that it returned with; 0 if with none
  bool time_was_over = false;   ///< so it returned in vain
  bool grant_was_over = false;  ///< so it returned to find out whether a grant is not taken up
  bool serves = false;          ///< a wait ends also when a message is there
  bool stored = false;          ///< since its last fence
  bool put = false;             ///< since its last fence
  std::uint8_t posts = 0;
  std::uint8_t stores = 0;          ///< in the buffer
  std::uint8_t stores_issued = 0;   ///< modulo 256
  std::uint8_t stores_drained = 0;  ///< modulo 256
  std::array<buffered, most_buffered> buffer{};
  std::array<posted, most_posted> post{};  ///< last, so that a copy can end with those in use

  /// The bytes that matter: those up to the last operation under way.
  [[nodiscard]] std::size_t used_bytes() const {
    return offsetof(fiber_state, post) + posts * sizeof(posted);
  }
};
static_assert(std::is_trivially_copyable_v<fiber_state>);

/// The stage of a participant: in, waiting, …, for the properties.
enum class stage : std::uint8_t {
  outside,
  acquiring,
  waiting,
  giving_up,  ///< the acquire's deadline is over; it may still get the lock
  inside,
  inside_shared,
  releasing,
};

/// The rest of the state, which a step of one participant can change for the others.
struct shared_state {
  std::array<stage, most_fibers> where{};
  std::array<bool, most_fibers> changed{};        ///< memory changed since its attempt began
  std::array<std::uint8_t, most_fibers> quiet{};  ///< attempts since then that saw nothing new
  std::array<std::uint8_t, most_fibers> retries{};
  std::array<std::uint16_t, most_fibers> overtaken{};
  std::array<std::uint8_t, most_fibers> came_after{};  ///< bit g: g began after this one waited
  std::array<bool, most_fibers> about_to_begin{};      ///< an acquire, with its next step
  std::uint8_t writers = 0;
  std::uint8_t readers = 0;
  std::uint8_t arrived = 0;       ///< at the rendezvous
  std::uint8_t dead = 0;          ///< bit f: f has died …
  std::uint8_t known = 0;         ///< … and deaths() counts it …
  std::uint8_t acknowledged = 0;  ///< … and what it had posted takes effect no more
  std::uint8_t stopped = 0;       ///< bit f: f has stopped, and lives
  std::uint8_t stops = 0;         ///< so many have stopped, also those that have died since
  std::uint8_t tries = 0;         ///< bit f: the acquire that f is in ends in any case
  std::uint8_t last = 0;          ///< the participant of the last step …
  std::uint16_t in_a_row = 0;     ///< … and its steps in a row, without a pause, in one stage
  std::uint8_t lapses = 0;   ///< deadlines of grants that were over while others could go on …
  std::uint8_t late = 0;     ///< … and while nothing else could happen
  bool holder_died = false;  ///< since the last mark_consistent
  word token = 0;            ///< of the last exclusive acquire
};

/// Bits for the classes of RMWs on a cell.
constexpr std::uint8_t cpu_rmw = 1;
constexpr std::uint8_t nic_rmw = 2;

struct world {
  shared_state all;
  std::array<fiber_state, most_fibers> fiber{};
  // Of the memory `tso` only.
  std::array<word, most_cells> memory{};
  std::array<std::uint8_t, most_cells> rmw_class{};  ///< the classes of RMWs on the cell so far
};

/// Mixes two words into one; every bit of both reaches every bit of the result.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15u ^ (b + 0xd1b54a32d192ed03u) * 0xff51afd7ed558ccdu;
  x ^= x >> 32;
  x *= 0xc4ceb9fe1a85ec53u;
  x ^= x >> 29;
  return x;
}

}  // namespace lockflight::check
