// The shared-memory fabric: ranks are processes or threads of one machine, segments are one shared
// mapping, and every operation is a CPU instruction on it.
//
// Nodes can be synthetic (topology), so that multi-level locks can run anywhere. An operation to
// another "node" is then the same instruction, and the counting decorator counts it as remote.
//
// Cost: a posted operation takes effect at its call; a flush is at most a fence.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockflight/fabric/cpu_operations.hpp"
#include "lockflight/fabric/parking.hpp"
#include "lockflight/rma/cxx20.hpp"
#include "lockflight/rma/participant.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::shm {

/// The most ranks that one run may have.
constexpr int most_ranks = 4096;

/// How a rank waits: three phases, in this order, until the awaited value is there.
struct wait_policy {
  std::uint32_t spins = 0;   ///< reads with a pause instruction between them
  std::uint32_t yields = 0;  ///< reads with sched_yield between them
  bool park = true;          ///< then sleep in the kernel (futex) until a rank writes to the home

  /// The policy for this many ranks on this many cores. With a core for each rank, spin long. With
  /// more ranks than cores, yield at once, since the awaited rank may be waiting for our core.
  [[nodiscard]] static wait_policy choose(int ranks, int cores);
  /// "auto", "spin", "yield" or "park". Throws std::invalid_argument that names them.
  [[nodiscard]] static wait_policy parse(const std::string& name, int ranks, int cores);
};

namespace detail {

/// A bounded queue of messages (Vyukov's, with one consumer).
struct alignas(64) message_slot {
  std::atomic<std::uint64_t> turn{0};
  rma::message content;
};
struct alignas(128) mailbox_ends {
  std::atomic<std::uint64_t> tail{0};
  alignas(64) std::uint64_t head = 0;  ///< used by the receiver alone
  /// Of the owner as a sender: 1 + the rank in whose mailbox it is filling a slot; 0: in none.
  std::atomic<std::uint32_t> fills_at{0};
};

struct control;

/// The shared mapping as this process sees it.
struct segment_view {
  control* shared = nullptr;
  detail::bells* bells = nullptr;  ///< [rank]
  mailbox_ends* mailboxes = nullptr;
  message_slot* slots = nullptr;  ///< slots_each for each rank
  std::uint64_t slots_each = 0;   ///< a power of two
  std::byte* cells = nullptr;
  int stride_shift = 0;  ///< log2 of the bytes of one rank's cells
};

}  // namespace detail

/// A rank's port on shared memory. Posted operations take effect at the call. Not thread-safe: it
/// belongs to one participant.
class port : public detail::cpu_operations<port> {
  friend class detail::cpu_operations<port>;

 public:
  static constexpr rma::capability_set capabilities{
      .uniform_rmw = true,
      .ordered_posts = true,  // each takes effect at its call
      .messages = true,
      .native_memory = true,
      .node_fence = true,
      .losses = true,  // where the run's config allows them
      .fabric = "shm"};

  port(rma::rank_t rank, const rma::topology& machine, const detail::segment_view& segment,
       wait_policy waiting, bool crowded)
      : segment_(segment), machine_(machine), rank_(rank), waiting_(waiting), crowded_(crowded) {}
  port(const port&) = delete;
  port& operator=(const port&) = delete;

  [[nodiscard]] rma::rank_t rank() const { return rank_; }
  [[nodiscard]] const rma::topology& machine() const { return machine_; }

  /// The size of each rank's segment.
  [[nodiscard]] std::uint32_t words_per_rank() const {
    constexpr int word_shift = 3;
    return 1u << (segment_.stride_shift - word_shift);
  }

  /// True if each store of all ranks has a fence, so that a rank that goes to sleep need not make
  /// the others pass one: after ranks have slept often, or where membarrier is refused.
  [[nodiscard]] bool stores_are_fenced() const;

  /// C40. A system call that interrupts each processor on which a rank runs: some
  /// microseconds, more in a virtual machine. If it is refused the run ends in this rank's name.
  void fence_node();

  // ---- waiting ----

  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    for (waiter w(*this, on);; serve(), w.step()) {
      const rma::word now = load(on);
      if (done(now)) return now;
    }
  }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    for (waiter w(*this, on, until);; serve(), w.step()) {
      const rma::word now = load(on);
      if (done(now) || is_over(until)) return now;
    }
  }

  template <class Cell, class Predicate>
  rma::word poll(Cell from, Predicate done, rma::backoff back_off) {
    return rma::poll_by_get(*this, from, done, back_off);
  }

  /// A waiting rank gives up its core at once.
  [[nodiscard]] bool shares_cores() const { return waiting_.spins == 0; }
  /// Pauses for about that long; with more ranks than cores it lets other ranks run.
  void pause(std::uint64_t nanoseconds);

  /// On the monotone clock of the system.
  [[nodiscard]] rma::deadline deadline_in(std::uint64_t nanoseconds);
  [[nodiscard]] bool is_over(rma::deadline until);

  // ---- messages ----

  void send(rma::rank_t to, std::array<rma::word, 3> body);
  [[nodiscard]] rma::message receive();
  [[nodiscard]] bool try_receive(rma::message& got);
  void serve_with(rma::message_handler* handler) { handler_ = handler; }

  // ---- losses (C39) ----

  [[nodiscard]] bool may_lose() const;
  [[nodiscard]] bool is_lost(rma::rank_t rank);
  [[nodiscard]] bool never_received(rma::rank_t rank, const std::array<rma::word, 3>& body) const;

  // ---- native memory ----

  template <class Cell>
  [[nodiscard]] void* native_address(Cell c) {
    return &address(c);
  }

 private:
  // A store has a fence only if the cell's bell asks for one.
  [[nodiscard]] static constexpr bool fenced_stores() { return false; }
  // Hands the messages that are there to the handler, if there is one (C37).
  void serve() {
    if (handler_ != nullptr) [[unlikely]]
      serve_all();
  }
  void serve_all();

  [[nodiscard]] detail::message_slot& slot(rma::rank_t of, std::uint64_t n) const {
    return segment_
        .slots[static_cast<std::uint64_t>(of) * segment_.slots_each + n % segment_.slots_each];
  }
  [[nodiscard]] bool is_abandoned(std::uint64_t n) const;
  void hear_of_losses();
  // Orders the other ranks' stores before their reads of `parked`. False if the system refuses it.
  [[nodiscard]] bool order_stores_of_others();
  [[nodiscard]] bool sleeps_often();

  // Goes through the phases of the wait policy, one step after each read in vain. After arming the
  // bell it reads once more before it sleeps, so that no wake-up is lost.
  class waiter {
   public:
    waiter(port& p, const auto& on, rma::deadline until = {UINT64_MAX})
        : port_(p), on_{on.home, on.index}, until_(until) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    void step();

   private:
    port& port_;
    rma::plain_cell on_;
    rma::deadline until_;
    std::uint32_t steps_ = 0;
    detail::sleeper sleeper_;
  };

  template <rma::cell_class Class>
  [[nodiscard, gnu::always_inline]] std::atomic<rma::word>& at(rma::cell<Class> c) const {
    std::byte* const address = segment_.cells +
                               (static_cast<std::size_t>(c.home) << segment_.stride_shift) +
                               std::size_t{c.index} * sizeof(rma::word);
    return *reinterpret_cast<std::atomic<rma::word>*>(address);
  }
  template <rma::cell_class Class>
  [[nodiscard, gnu::always_inline]] detail::bell& bell_of(rma::cell<Class> c) const {
    return segment_.bells[c.home].of(c.index);
  }

  detail::segment_view segment_;
  const rma::topology& machine_;
  rma::rank_t rank_;
  wait_policy waiting_;
  bool crowded_;  // there are more ranks than cores
  std::uint32_t pauses_ = 0;
  std::uint32_t barriers_ = 0;        // that we have made to sleep
  std::uint64_t barriers_since_ = 0;  // when their count last was a multiple of that in the rule
  rma::message_handler* handler_ = nullptr;
  std::uint32_t losses_heard_ = 0;   // of the run's losses, those that the handler knows
  std::uint32_t losses_seen_ = 0;    // of the run's losses, those that this port has seen
  std::uint64_t messages_then_ = 0;  // messages from those ranks are among the first so many
  detail::short_yields yields_;
};

/// The configuration of a run.
struct config {
  rma::topology machine = rma::topology::flat(1);
  bool threads = false;  ///< ranks are threads of this process instead of processes
  bool pin = true;       ///< bind each rank to a core
  std::string waiting = "auto";
  std::uint32_t words_per_rank = 1u << 17;  ///< rounded up to a power of two; committed lazily
  int processors = 0;                       ///< to assume for `waiting`; 0: as many as there are
  /// True if the run goes on without this rank when its process is killed (SIGKILL); null: the run
  /// ends when any rank is killed. It never goes on without rank 0, nor where ranks are threads. If
  /// it is true for a rank, the program must not wait for that rank: docs/contract.md, C39.
  std::function<bool(rma::rank_t)> bears_loss_of = nullptr;
};

/// A rank died or threw. `what()` names it and says how.
struct rank_failed : std::runtime_error {
  rank_failed(rma::rank_t r, const std::string& how)
      : std::runtime_error("rank " + std::to_string(r) + " " + how), rank(r) {}
  rma::rank_t rank;
};

/// Thrown out of a wait in the other threads when one rank of a threaded run has failed.
struct run_aborted : std::runtime_error {
  run_aborted() : std::runtime_error("another rank failed") {}
};

/// Called by the parent about ten times a second while ranks run.
using monitor = std::function<void()>;

/// Runs `body` once on every rank and returns when all have returned. The ranks are forked from the
/// caller, so they see what it has prepared; what they change is private to them, except in shared
/// mappings. The segment has no name, so nothing is left behind when processes die.
///
/// If the caller ignores SIGCHLD, or has set SA_NOCLDWAIT, run() suspends that setting in the
/// caller's process until the run ends. No file that a run keeps open is a descriptor below 3.
///
/// Returns the ranks that were lost, in that order: none, unless `bears_loss_of` allows it.
/// Throws rank_failed within a second of any other rank's death, after ending the others;
/// std::system_error when the system refuses memory or processes; std::invalid_argument on a bad
/// config.
std::vector<rma::rank_t> run_ports(const config& what, const std::function<void(port&)>& body,
                                   const monitor& watch = nullptr);

/// The same with a participant for each rank, for programs that lock.
inline std::vector<rma::rank_t> run(const config& what,
                                    const std::function<void(rma::participant<port>&)>& body) {
  return run_ports(what, [&](port& p) {
    rma::participant<port> me(p, what.words_per_rank);
    body(me);
  });
}

/// The hardware that hwloc finds: the levels that distinguish cores (packages, NUMA nodes, caches),
/// with `ranks` ranks placed on the cores in order. One node, since the machine is coherent.
struct hardware {
  rma::topology machine;
  std::vector<std::string> level_names;  ///< [level - 1]: "machine", "package", …
  std::vector<int> processor_of_rank;    ///< OS index of each rank's processor
  int cores = 1;                         ///< cores this process may use
  int processors = 1;                    ///< hardware threads this process may use
};
[[nodiscard]] hardware discover(int ranks);
/// The most levels with which a machine is described: a tree of queues can climb so many.
inline constexpr std::size_t most_levels = 4;

}  // namespace lockflight::shm
