// A port of ranks whose nodes share memory and reach each other over a network. Within a node an
// operation on a cpu or plain cell is a CPU instruction; between nodes every operation is the
// network's. The ports of MPI, UCX, libfabric and OpenSHMEM are this one, on networks of
// their own.
//
// Cost in network operations: one for a posted operation that no CPU instruction can do here, none
// for the others.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::fabric {

enum class remote_kind : std::uint8_t { put, get, add, fetch_add, swap };

/// The network below a port: posted operations between nodes, messages, progress. It belongs to the
/// port's participant. A target that is gone makes operations throw.
class network {
 public:
  virtual ~network() = default;

  // Posted: `result` is valid after the next complete() of that rank.
  virtual void post(remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
                    rma::word* result) = 0;
  /// A get of the word at `index` and of those at the same place of the cache lines after it; one
  /// get for each, all under way together, where the network has no operation for all of them.
  virtual void post_lines(rma::rank_t home, std::uint32_t index, std::span<rma::word> results);
  virtual void post_compare_swap(rma::rank_t home, std::uint32_t index, rma::word expected,
                                 rma::word desired, rma::word* result) = 0;
  /// Returns when all that was posted to that rank has taken effect there (C7).
  virtual void complete(rma::rank_t home) = 0;
  virtual void complete_all() = 0;
  [[nodiscard]] virtual bool pending() const = 0;

  virtual void send(rma::rank_t to, const rma::message& m) = 0;
  [[nodiscard]] virtual bool try_receive(rma::message& got) = 0;

  /// Makes one step, in which this rank serves other ranks' operations on it.
  virtual void progress() = 0;
};

/// The operations of a port that are CPU instructions.
struct cpu_use {
  bool only = false;       ///< all of them: every rank is on this node
  bool nic_cells = false;  ///< atomics on nic cells of this node too: the network's RMWs on them
                           ///< are atomic with the CPU's
};

/// A rank's port. Posted operations to other nodes, and those on nic cells that are not the CPU's,
/// go through the network and complete at the flush; the others take effect at the call. Not
/// thread-safe: it belongs to one participant.
class networked_port : public shm::detail::immediate_operations<networked_port> {
  friend class shm::detail::immediate_operations<networked_port>;

 public:
  static constexpr rma::capability_set capabilities{
      .messages = true, .target_takes_part = true, .fabric = "network"};

  /// `base[r]` is the address of rank r's cells in this process, its bells in front of them; null
  /// if r is on another node.
  networked_port(rma::rank_t rank, const rma::topology& machine,
                 const std::vector<std::byte*>& base, cpu_use cpu, shm::wait_policy waiting,
                 network& link, bool serves = false)
      : base_(base.data()),
        machine_(machine),
        link_(link),
        waiting_(waiting),
        rank_(rank),
        only_cpu_(cpu.only),
        nic_by_cpu_(cpu.only || cpu.nic_cells),
        rings_(cpu.only && waiting.park),
        reads_between_progress_(!cpu.only ? 1
                                : serves  ? 4
                                          : 256),
        rmws_until_look_(cpu.only && !serves ? 0 : 1) {}

  [[nodiscard]] rma::rank_t rank() const { return rank_; }
  [[nodiscard]] const rma::topology& machine() const { return machine_; }

  /// Called while this rank waits, between two reads and many times a millisecond. It may let other
  /// threads use the port meanwhile, since no operation is pending then (C9). Must outlive the
  /// port.
  void while_waiting(const std::function<void()>& hook) { hook_ = &hook; }

  /// As rma::resolve has it; for cells that the CPU reaches from here.
  template <rma::cell_class Class>
  [[nodiscard]] shm::detail::resolved_cell<Class> resolve(rma::cell<Class> c) const {
    if (base_[c.home] == nullptr) return {c, nullptr, nullptr};
    return {c, &address(c), &bell_of(c)};
  }

  // ---- posted ----
  // The operations that a lock issues most are always inlined: compilers stop inlining where a lock
  // is large, and inside the node such an operation is a few instructions.

  template <class Cell>
  void put(Cell to, rma::word value) {
    if (by_cpu(to)) [[likely]]
      write(to, value);
    else
      post(remote_kind::put, to.home, to.index, value, nullptr);
  }

  // A posted operation must not overtake an earlier store of ours (C12); a plain load would.
  template <class Cell>
  void get(Cell from, rma::word& result) {
    order_after_writes();
    if (by_cpu(from)) [[likely]]
      result = address(from).load(std::memory_order_acquire);
    else
      post(remote_kind::get, from.home, from.index, 0, &result);
  }

  template <class Cell>
  void get_lines(Cell first, std::span<rma::word> results) {
    if (!by_cpu(first)) return post_lines(first.home, first.index, results);
    for (rma::word& result : results) {
      get(first, result);
      first = first + rma::line_words;
    }
  }

  [[gnu::always_inline]] void add(rma::nic_cell to, rma::word value) {
    if (!by_cpu(to)) [[unlikely]]
      return post(remote_kind::add, to.home, to.index, value, nullptr);
    address(to).fetch_add(value, std::memory_order_seq_cst);
    after_rmw(to);
  }
  [[gnu::always_inline]] void fetch_add(rma::nic_cell to, rma::word value, rma::word& before) {
    if (!by_cpu(to)) [[unlikely]]
      return post(remote_kind::fetch_add, to.home, to.index, value, &before);
    before = address(to).fetch_add(value, std::memory_order_seq_cst);
    after_rmw(to);
  }
  void swap(rma::nic_cell at_cell, rma::word value, rma::word& before) {
    if (!by_cpu(at_cell)) [[unlikely]]
      return post(remote_kind::swap, at_cell.home, at_cell.index, value, &before);
    before = address(at_cell).exchange(value, std::memory_order_seq_cst);
    after_rmw(at_cell);
  }
  void compare_swap(rma::nic_cell at_cell, rma::word expected, rma::word desired,
                    rma::word& before) {
    if (!by_cpu(at_cell)) [[unlikely]]
      return post_compare_swap(at_cell, expected, desired, before);
    before = expected;
    address(at_cell).compare_exchange_strong(before, desired, std::memory_order_seq_cst);
    after_rmw(at_cell);
  }

  // CPU instructions have taken effect already. The flush orders our later reads after them (C7).
  void flush(rma::rank_t rank) {
    order_after_writes();
    if (pending_) [[unlikely]]
      complete(rank);
  }
  void flush() {
    order_after_writes();
    if (pending_) [[unlikely]]
      complete_all();
  }

  // ---- waiting ----

  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    for (waiter w(*this, on);; serve(), w.step()) {
      const rma::word now = address(on).load(std::memory_order_acquire);
      if (done(now)) return now;
    }
  }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    for (waiter w(*this, on, until);; serve(), w.step()) {
      const rma::word now = address(on).load(std::memory_order_acquire);
      if (done(now) || is_over(until)) return now;
    }
  }

  template <class Cell, class Predicate>
  rma::word poll(Cell from, Predicate done, rma::backoff back_off) {
    return rma::poll_by_get(*this, from, done, back_off);
  }

  /// A waiting rank gives up its core at once.
  [[nodiscard]] bool shares_cores() const { return waiting_.spins == 0; }
  /// Pauses for about that long and serves other nodes meanwhile; with more ranks than cores it
  /// lets other ranks run.
  void pause(std::uint64_t nanoseconds);

  /// On the monotone clock of the system.
  [[nodiscard]] rma::deadline deadline_in(std::uint64_t nanoseconds);
  [[nodiscard]] bool is_over(rma::deadline until);

  // ---- messages: the network's, on every machine ----

  void send(rma::rank_t to, std::array<rma::word, 3> body);
  [[nodiscard]] rma::message receive();
  [[nodiscard]] bool try_receive(rma::message& got);
  void serve_with(rma::message_handler* handler) { handler_ = handler; }

 private:
  // Goes through the phases of the wait policy, one step after each read in vain. After arming the
  // bell it reads once more before it sleeps, so that no wake-up is lost.
  class waiter {
   public:
    waiter(networked_port& p, const auto& on, rma::deadline until = {UINT64_MAX})
        : port_(p), on_{on.home, on.index}, until_(until) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    void step();

   private:
    networked_port& port_;
    rma::plain_cell on_;
    rma::deadline until_;
    std::uint32_t steps_ = 0;
    shm::detail::sleeper sleeper_;
  };

  // Hands the messages that are there to the handler, if there is one (C37).
  void serve() {
    if (handler_ != nullptr) [[unlikely]]
      serve_all();
  }
  void serve_all();

  /// Serves other nodes, and calls the hook of while_waiting.
  void make_progress();
  // A rank that locks and unlocks by CPU instructions alone serves other ranks all the same (C44):
  // a step of progress every so many microseconds, and a look at the clock every few of these
  // instructions.
  void serve_by_the_way();

  // True if an operation on this cell is a CPU instruction here.
  template <class Cell>
  [[nodiscard, gnu::always_inline]] bool by_cpu(Cell c) const {
    if constexpr (Cell::class_of == rma::cell_class::nic)
      return nic_by_cpu_ && base_[c.home] != nullptr;
    else
      return base_[c.home] != nullptr;
  }

  template <rma::cell_class Class>
  [[nodiscard, gnu::always_inline]] std::atomic<rma::word>& address(
      const shm::detail::resolved_cell<Class>& c) const {
    return *c.address;
  }
  template <rma::cell_class Class>
  [[nodiscard, gnu::always_inline]] std::atomic<rma::word>& address(rma::cell<Class> c) const {
    return *reinterpret_cast<std::atomic<rma::word>*>(base_[c.home] +
                                                      std::size_t{c.index} * sizeof(rma::word));
  }

  // Release: what the participant wrote before is visible to a participant that reads the value.
  template <class Cell>
  [[gnu::always_inline]] void write(Cell to, rma::word value) {
    address(to).store(value, std::memory_order_release);
    unordered_writes_ = true;
    // If ranks may sleep, the read of `parked` must come after the write.
    if (rings_) order_after_writes();
    ring(to);
  }

  [[gnu::always_inline]] void after_rmw(const auto& on) {
    order_after_rmw();
    ring(on);
    if (--rmws_until_look_ == 0) [[unlikely]]
      serve_by_the_way();
  }

  // Wakes ranks that sleep on this cell. The write comes before the read of `parked`: an RMW or a
  // fence lies between.
  [[gnu::always_inline]] void ring(const auto& on) {
    if (rings_) bell_of(on).ring();
  }
  template <rma::cell_class Class>
  [[nodiscard]] shm::detail::bell& bell_of(rma::cell<Class> c) const {
    using shm::detail::bells;
    return reinterpret_cast<bells*>(base_[c.home] - sizeof(bells))->of(c.index);
  }
  template <rma::cell_class Class>
  [[nodiscard]] shm::detail::bell& bell_of(const shm::detail::resolved_cell<Class>& c) const {
    return *c.bell;
  }

  void post(remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
            rma::word* result);
  void post_lines(rma::rank_t home, std::uint32_t index, std::span<rma::word> results);
  void post_compare_swap(rma::nic_cell at_cell, rma::word expected, rma::word desired,
                         rma::word& before);
  void complete(rma::rank_t rank);
  void complete_all();

  std::byte* const* base_;
  const rma::topology& machine_;
  network& link_;
  shm::wait_policy waiting_;
  rma::rank_t rank_;
  bool only_cpu_;
  bool nic_by_cpu_;
  bool rings_;
  // Between nodes an awaited value arrives through progress: every read makes some. Where all ranks
  // share a node this fabric needs no progress, but the program around it may use the network too:
  // it is served now and then.
  std::uint32_t reads_between_progress_;
  // Counts down to the next look at the clock. If only the CPU is used, also by the program around,
  // it begins at 0, which it does not reach again soon.
  std::uint32_t rmws_until_look_;
  std::uint32_t rmws_between_looks_ = 1;
  std::uint64_t looked_at_ = 0;  // ns
  std::uint64_t served_at_ = 0;  // ns
  bool pending_ = false;         // operations of the network are not flushed
  std::uint32_t pauses_ = 0;
  rma::message_handler* handler_ = nullptr;
  shm::detail::short_yields yields_;
  const std::function<void()>* hook_ = nullptr;
};

}  // namespace lockflight::fabric
