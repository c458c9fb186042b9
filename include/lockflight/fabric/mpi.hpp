// The MPI fabric: ranks are those of an MPI launch. Between nodes every operation is MPI-3
// one-sided communication; within a node an operation on a cpu or plain cell is a CPU instruction
// on memory that the node's ranks share.
//
// Where all ranks share one node, no cell is accessed through MPI, and nic cells use CPU atomics
// too: the fabric is as fast as shared memory, and no rank waits for a target to make progress.
// With several nodes nic cells are accessed only through MPI, loopback included, so that the two
// kinds of read-modify-write never meet on a cell (C2).
//
// This header includes no mpi.h. Programs that use the fabric are compiled once and linked with the
// library that was built for one MPI.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/rma/participant.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::mpi {

/// How a rank waits. The phases are those of shared memory; `park` has an effect only where all
/// ranks are on one node, since a rank that sleeps does not serve other nodes (C17).
using wait_policy = shm::wait_policy;

/// The fabric cannot run on this MPI or this launch; `what()` says what is missing.
struct unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace detail {

/// The MPI side of a port: posted operations between nodes, messages, progress.
class link;

/// Lies in front of each rank's cells: neighbours wake the ranks that sleep on those cells with it.
using bell = shm::detail::bell;

enum class remote_kind : std::uint8_t { put, get, add, fetch_add, swap };

}  // namespace detail

/// A rank's port on MPI. Posted operations to other nodes, and on nic cells if there are several
/// nodes, go through MPI and complete at the flush; the others take effect at the call. Not
/// thread-safe: it belongs to one participant, the thread that initialised MPI.
class port {
 public:
  static constexpr rma::capability_set capabilities{
      .messages = true, .target_takes_part = true, .fabric = "mpi"};

  /// `base[r]` is the address of rank r's cells in this process, null if r is on another node.
  /// `only_cpu`: no cell is accessed through MPI.
  port(rma::rank_t rank, const rma::topology& machine, const std::vector<std::byte*>& base,
       bool only_cpu, wait_policy waiting, detail::link& link, bool serves = false)
      : base_(base.data()),
        machine_(machine),
        link_(link),
        waiting_(waiting),
        rank_(rank),
        only_cpu_(only_cpu),
        rings_(only_cpu && waiting.park),
        reads_between_progress_(!only_cpu ? 1
                                : serves  ? 4
                                          : 256),
        rmws_until_look_(only_cpu ? 0 : 1) {}
  port(const port&) = delete;
  port& operator=(const port&) = delete;

  [[nodiscard]] rma::rank_t rank() const { return rank_; }
  [[nodiscard]] const rma::topology& machine() const { return machine_; }

  /// Called while this rank waits, between two reads and many times a millisecond. It may let other
  /// threads use the port meanwhile, since no operation is pending then (C9). Must outlive the
  /// port.
  void while_waiting(const std::function<void()>& hook) { hook_ = &hook; }

  // ---- posted ----

  template <class Cell>
  void put(Cell to, rma::word value) {
    if (by_cpu(to)) [[likely]]
      write(to, value);
    else
      post(detail::remote_kind::put, to.home, to.index, value, nullptr);
  }

  // A posted operation must not overtake an earlier store of ours (C12); a plain load would.
  template <class Cell>
  void get(Cell from, rma::word& result) {
    order_after_writes();
    if (by_cpu(from)) [[likely]]
      result = at(from).load(std::memory_order_acquire);
    else
      post(detail::remote_kind::get, from.home, from.index, 0, &result);
  }

  template <class Cell>
  void get_lines(Cell first, std::span<rma::word> results) {
    if (!by_cpu(first)) return post_lines(first.home, first.index, results);
    for (rma::word& result : results) {
      get(first, result);
      first = first + rma::line_words;
    }
  }

  void add(rma::nic_cell to, rma::word value) {
    if (!only_cpu_) [[unlikely]]
      return post(detail::remote_kind::add, to.home, to.index, value, nullptr);
    at(to).fetch_add(value, std::memory_order_seq_cst);
    after_rmw(to.home);
  }
  void fetch_add(rma::nic_cell to, rma::word value, rma::word& before) {
    if (!only_cpu_) [[unlikely]]
      return post(detail::remote_kind::fetch_add, to.home, to.index, value, &before);
    before = at(to).fetch_add(value, std::memory_order_seq_cst);
    after_rmw(to.home);
  }
  void swap(rma::nic_cell at_cell, rma::word value, rma::word& before) {
    if (!only_cpu_) [[unlikely]]
      return post(detail::remote_kind::swap, at_cell.home, at_cell.index, value, &before);
    before = at(at_cell).exchange(value, std::memory_order_seq_cst);
    after_rmw(at_cell.home);
  }
  void compare_swap(rma::nic_cell at_cell, rma::word expected, rma::word desired,
                    rma::word& before) {
    if (!only_cpu_) [[unlikely]]
      return post_compare_swap(at_cell, expected, desired, before);
    before = expected;
    at(at_cell).compare_exchange_strong(before, desired, std::memory_order_seq_cst);
    after_rmw(at_cell.home);
  }

  // CPU instructions have taken effect already. It remains to order our later reads after them
  // (C7).
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

  // ---- immediate ----

  template <class Cell>
  [[nodiscard]] rma::word load(Cell from) {
    return at(from).load(std::memory_order_acquire);
  }
  template <class Cell>
  void store(Cell to, rma::word value) {
    static_assert(Cell::class_of != rma::cell_class::nic,
                  "no store on a nic cell: a NIC's read-modify-write could swallow it; use put");
    write(to, value);
  }
  [[nodiscard]] rma::word cpu_fetch_add(rma::cpu_cell to, rma::word value) {
    const rma::word before = at(to).fetch_add(value, std::memory_order_seq_cst);
    after_rmw(to.home);
    return before;
  }
  [[nodiscard]] rma::word cpu_swap(rma::cpu_cell at_cell, rma::word value) {
    const rma::word before = at(at_cell).exchange(value, std::memory_order_seq_cst);
    after_rmw(at_cell.home);
    return before;
  }
  [[nodiscard]] rma::word cpu_compare_swap(rma::cpu_cell at_cell, rma::word expected,
                                           rma::word desired) {
    at(at_cell).compare_exchange_strong(expected, desired, std::memory_order_seq_cst);
    after_rmw(at_cell.home);
    return expected;
  }
  void fence() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    unordered_writes_ = false;
  }

  // ---- waiting ----

  template <class Cell, class Predicate>
  rma::word await(Cell on, Predicate done) {
    for (waiter w(*this, on.home);; serve(), w.step()) {
      const rma::word now = at(on).load(std::memory_order_acquire);
      if (done(now)) return now;
    }
  }
  template <class Cell, class Predicate>
  rma::word await_until(Cell on, Predicate done, rma::deadline until) {
    for (waiter w(*this, on.home, until);; serve(), w.step()) {
      const rma::word now = at(on).load(std::memory_order_acquire);
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

  // ---- messages: two-sided MPI, on every machine ----

  void send(rma::rank_t to, std::array<rma::word, 3> body);
  [[nodiscard]] rma::message receive();
  [[nodiscard]] bool try_receive(rma::message& got);
  void serve_with(rma::message_handler* handler) { handler_ = handler; }

 private:
  // Goes through the phases of the wait policy, one step after each read in vain. After arming the
  // bell it reads once more before it sleeps, so that no wake-up is lost.
  class waiter {
   public:
    waiter(port& p, rma::rank_t home, rma::deadline until = {UINT64_MAX})
        : port_(p), home_(home), until_(until) {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;
    void step();

   private:
    port& port_;
    rma::rank_t home_;
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
  // Who locks and unlocks by CPU instructions alone serves other nodes all the same (C44): a step
  // of progress every so many microseconds, and a look at the clock every few of these
  // instructions.
  void serve_by_the_way();

  // Whether an operation on this cell is a CPU instruction here.
  template <class Cell>
  [[nodiscard]] bool by_cpu(Cell c) const {
    if constexpr (Cell::class_of == rma::cell_class::nic)
      return only_cpu_;
    else
      return base_[c.home] != nullptr;
  }

  template <class Cell>
  [[nodiscard]] std::atomic<rma::word>& at(Cell c) const {
    return *reinterpret_cast<std::atomic<rma::word>*>(base_[c.home] +
                                                      std::size_t{c.index} * sizeof(rma::word));
  }

  // Release: what the participant wrote before is visible to a participant that reads the value.
  template <class Cell>
  void write(Cell to, rma::word value) {
    at(to).store(value, std::memory_order_release);
    unordered_writes_ = true;
    // Where ranks may sleep, the read of `parked` must come after the write.
    if (rings_) order_after_writes();
    ring(to.home);
  }

  // Orders our later reads after our earlier writes.
  void order_after_writes() {
    if (!unordered_writes_) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    unordered_writes_ = false;
  }

  void after_rmw(rma::rank_t home) {
    if constexpr (shm::detail::rmw_is_fence)
      unordered_writes_ = false;
    else
      fence();
    ring(home);
    if (--rmws_until_look_ == 0) [[unlikely]]
      serve_by_the_way();
  }

  // Wakes ranks that sleep on a cell of `home`. The write comes before the read of `parked`: an RMW
  // or a fence lies between.
  void ring(rma::rank_t home) {
    if (rings_) bell_of(home).ring();
  }
  [[nodiscard]] detail::bell& bell_of(rma::rank_t home) const {
    return *reinterpret_cast<detail::bell*>(base_[home] - sizeof(detail::bell));
  }

  void post(detail::remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
            rma::word* result);
  void post_lines(rma::rank_t home, std::uint32_t index, std::span<rma::word> results);
  void post_compare_swap(rma::nic_cell at_cell, rma::word expected, rma::word desired,
                         rma::word& before);
  void complete(rma::rank_t rank);
  void complete_all();

  std::byte* const* base_;
  const rma::topology& machine_;
  detail::link& link_;
  wait_policy waiting_;
  rma::rank_t rank_;
  bool only_cpu_;
  bool rings_;
  // Between nodes an awaited value arrives through progress: every read makes some. Where all ranks
  // share a node this fabric needs no progress, but the program around it may use MPI too: its
  // messages are served now and then.
  std::uint32_t reads_between_progress_;
  // Counts down. Where only the CPU is used it begins at 0, which it does not reach again soon.
  std::uint32_t rmws_until_look_;
  std::uint32_t rmws_between_looks_ = 1;
  std::uint64_t looked_at_ = 0;  // ns
  std::uint64_t served_at_ = 0;  // ns
  bool unordered_writes_ = false;
  bool pending_ = false;  // MPI operations are not flushed
  std::uint32_t pauses_ = 0;
  rma::message_handler* handler_ = nullptr;
  shm::detail::short_yields yields_;
  const std::function<void()>* hook_ = nullptr;
};

/// MPI for the lifetime of this object: initialises MPI unless it is initialised, and finalises it
/// then. One thread calls MPI, and with LOCKFLIGHT_PROGRESS another one. Collective.
///
/// LOCKFLIGHT_PROGRESS says who serves other nodes while a rank computes, where that needs help.
/// `calls`, the default: nobody; a rank serves when it waits, locks or unlocks (C44). `thread`: a
/// thread of each rank, which sleeps until something arrives; it needs MPI_THREAD_MULTIPLE. `auto`:
/// a thread where this MPI has that, there are several nodes, and a short trial finds that a target
/// that computes does not answer.
class environment {
 public:
  /// Throws `unavailable` when MPI has been finalised already.
  environment();
  ~environment();
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;

  /// Those of the launch: MPI_COMM_WORLD.
  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  /// Whether `holds` is true on every rank of the launch. Collective.
  [[nodiscard]] bool all(bool holds) const;
  /// Rank 0's value, on every rank of the launch. Collective.
  [[nodiscard]] double first(double mine) const;
  /// The least of all ranks' values. Collective.
  [[nodiscard]] double least(double mine) const;
  /// Each rank's text, by rank. Collective.
  [[nodiscard]] std::vector<std::string> gather(const std::string& mine) const;
  /// For each rank the lowest rank on its host, with which it can share memory. Collective.
  [[nodiscard]] std::vector<int> first_of_host() const;

 private:
  bool ours_ = false;
};

/// The configuration of a run; the same on all ranks of the communicator.
struct config {
  rma::topology machine = rma::topology::flat(1);
  std::string waiting = "auto";  ///< "auto", "spin", "yield" or "park"
  std::uint32_t words_per_rank = 1u << 17;
  int processors = 0;  ///< of a machine, to assume for `waiting`; 0: as many as there are
  /// A communicator as MPI_Comm_c2f gives it, whose first ranks are the run's; without it
  /// MPI_COMM_WORLD.
  std::optional<int> communicator{};
  /// If all nodes of the topology share memory, they reach each other with CPU instructions. If
  /// this is false they use MPI between them wherever they are.
  bool shared_nodes = false;
  /// The program around uses MPI too, and its one-sided operations may need their target's
  /// progress: a waiting rank serves others all the time and does not sleep.
  bool serves = false;
};

/// Runs `body` once on each of the first ranks of the communicator, as many as the machine has, and
/// returns on all ranks when all have returned; ranks beyond the machine sleep meanwhile.
/// Collective over the communicator. The port lives as long as the body.
///
/// A rank whose body throws says so on standard error and ends the launch with exit code 3 (C36):
/// MPI has no way to go on without it.
///
/// Throws, on every rank alike, std::invalid_argument on a bad config (a machine that is larger
/// than the communicator, nodes that span machines) or LOCKFLIGHT_PROGRESS, and `unavailable` when
/// this MPI lacks what the fabric needs: a unified memory model and atomic read-modify-writes, on a
/// machine of several nodes, and the threads that LOCKFLIGHT_PROGRESS asks for.
void run_ports(const config& what, const std::function<void(port&)>& body);

/// The same with a participant for each rank, for programs that lock.
inline void run(const config& what, const std::function<void(rma::participant<port>&)>& body) {
  run_ports(what, [&](port& p) {
    rma::participant<port> me(p, what.words_per_rank);
    body(me);
  });
}

/// A port for the lifetime of this object, for programs that have no body to run, such as the
/// drop-in. Its construction and its end are collective over the communicator. No rank may use its
/// port once the first rank has begun to end.
class membership {
 public:
  /// Throws as run_ports does. All ranks of the communicator are the machine's.
  explicit membership(config what);
  ~membership();
  membership(const membership&) = delete;
  membership& operator=(const membership&) = delete;

  [[nodiscard]] port& access();
  [[nodiscard]] const rma::topology& machine() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// The machine of a communicator, as MPI_Comm_c2f gives it: a node consists of the ranks that can
/// share memory. LOCKFLIGHT_MPI_NODES=k cuts every machine's
/// ranks into k nodes, for tests. Collective. Throws `unavailable` when MPI is not initialised or
/// is finalised, std::invalid_argument on MPI_COMM_NULL or, on all ranks, if k is no number.
[[nodiscard]] rma::topology nodes_of(int communicator);

/// Whether a machine has more ranks of the communicator, as MPI_Comm_c2f gives it, than cores that
/// they may use. Collective. Throws as nodes_of does.
[[nodiscard]] bool shares_cores(int communicator);

/// The first rank's text, on every rank of a communicator as MPI_Comm_c2f gives it. Collective.
/// Throws as nodes_of does.
[[nodiscard]] std::string first_rank_says(std::string mine, int communicator);

/// For what may have failed on one rank alone: each rank of a communicator as MPI_Comm_c2f gives it
/// says why, or nothing if all is well there. If one says why all throw `unavailable`, in its
/// words. Collective.
void agree(const std::string& why, int communicator);

/// Says what failed, on standard error, and ends the launch with exit code 3. For what only one
/// rank sees.
[[noreturn]] void abandon(const std::string& why);

/// The levels of the first `ranks` ranks of MPI_COMM_WORLD: the launch, its nodes (the ranks that
/// can share memory, by MPI_Comm_split_type), and below them what hwloc finds there, if the nodes
/// are alike. LOCKFLIGHT_MPI_NODES=k cuts every machine's ranks into k nodes, for tests.
/// Collective.
struct hardware {
  rma::topology machine;
  std::vector<std::string> level_names;  ///< [level - 1]
};
[[nodiscard]] hardware discover(int ranks);

/// Zeroed memory for the first `ranks` ranks of MPI_COMM_WORLD; ranks of one machine share it. Its
/// construction and destruction are collective.
class machine_memory {
 public:
  machine_memory(int ranks, std::size_t bytes);
  ~machine_memory();
  machine_memory(const machine_memory&) = delete;
  machine_memory& operator=(const machine_memory&) = delete;

  /// Null on ranks beyond the first `ranks`.
  [[nodiscard]] std::byte* data() const { return data_; }
  /// The lowest rank that shares it with this one.
  [[nodiscard]] rma::rank_t leader() const { return leader_; }
  /// Whether all `ranks` ranks share it.
  [[nodiscard]] bool whole() const { return whole_; }
  /// Copies `count` bytes at `data() + offset` of rank `from`'s machine to rank 0's, at the same
  /// place. Collective over the `ranks` ranks; false, and nothing copied, where the two share
  /// memory.
  bool bring_to_first(rma::rank_t from, std::size_t offset, std::size_t count);
  /// Waits for all `ranks` ranks.
  void barrier();

 private:
  struct handles;
  std::unique_ptr<handles> handles_;
  std::byte* data_ = nullptr;
  rma::rank_t leader_ = 0;
  bool whole_ = true;
};

/// Operations on the memory of a host's first rank from another host.
struct host_findings {
  std::string name;
  int ranks = 0;
  int cores = 0;  ///< for this launch
  // To a rank that waits in MPI; medians.
  double put_us = 0;
  double get_us = 0;
  double fetch_add_us = 0;
  double compare_swap_us = 0;
  double computing_us = 0;  ///< the longest fetch-add to a rank that computes for `computed_us`
  double computed_us = 0;

  /// Whether operations end without a call of MPI by their target.
  [[nodiscard]] bool direct() const { return computing_us < computed_us / 2; }
};

/// Properties of an MPI's one-sided communication, found in a short trial on this launch.
struct findings {
  std::string library;  ///< MPI_Get_library_version, its first line
  std::string standard;
  std::string thread_level;
  int ranks = 0;
  int machines = 0;
  int cores = 0;               ///< of rank 0's machine, for this launch
  bool unified = false;        ///< windows are made, and are MPI_WIN_UNIFIED
  std::string refused{};       ///< why not, in MPI's words
  bool shares_memory = false;  ///< MPI_Win_allocate_shared works among the ranks of a machine
  bool fetch_add_atomic = false;
  bool compare_swap_atomic = false;
  bool mixed_atomic = false;  ///< sum, replace and compare-and-swap on one word, with each other
  double waiting_us = 0;      ///< a fetch-add to a target that waits in MPI; the median
  double computing_us = 0;    ///< the longest to a target that computes for `computed_us`
  double computed_us = 0;
  double plain_flush_us = 0;           ///< a fetch-add completed by MPI_Win_flush; the median
  double blocked_flush_us = 0;         ///< the longest; more ranks than cores make it wait
  double iprobe_us = 0;                ///< one step of progress
  std::vector<host_findings> hosts{};  ///< empty on one host
};

/// Tries this MPI with all ranks of MPI_COMM_WORLD; some seconds. Collective; the result is rank
/// 0's. With one rank there is no target to try, and the times are 0.
[[nodiscard]] findings probe();

}  // namespace lockflight::mpi
