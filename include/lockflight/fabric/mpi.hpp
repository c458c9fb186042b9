// The MPI fabric: ranks are those of an MPI launch. Between nodes every operation is MPI-3
// one-sided communication; within a node an operation on a cpu or plain cell is a CPU instruction
// on memory that the node's ranks share.
//
// If all ranks share one node, no cell is accessed through MPI, and nic cells use CPU atomics
// too: the fabric is as fast as shared memory, and no rank waits for a target to make progress.
// With several nodes nic cells are accessed only through MPI, loopback included, so that the two
// kinds of read-modify-write never meet on a cell (C2).
//
// This header includes no mpi.h. Programs that use the fabric are compiled once and linked with the
// library that was built for one MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "lockflight/fabric/findings.hpp"
#include "lockflight/fabric/launch.hpp"
#include "lockflight/fabric/networked.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/rma/cxx20.hpp"
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

/// The bells in front of each rank's cells, by which neighbours wake the ranks that sleep on those
/// cells.
using bells = shm::detail::bells;

}  // namespace detail

/// A rank's port on MPI; it belongs to the thread that initialised MPI. Posted operations to other
/// nodes, and on nic cells if there are several nodes, go through MPI.
using port = fabric::networked_port;

/// MPI for the lifetime of this object: initialises MPI unless it is initialised, and finalises it
/// then. One thread calls MPI, and with LOCKFLIGHT_PROGRESS another one. Collective.
///
/// LOCKFLIGHT_PROGRESS chooses what serves other nodes while a rank computes, if that needs help.
/// `calls`, the default: no thread; a rank serves when it waits, locks or unlocks (C44). `thread`:
/// a thread of each rank, which sleeps until something arrives; it needs MPI_THREAD_MULTIPLE.
/// `auto`: a thread where this MPI has that, there are several nodes, and a short trial finds that
/// a target that computes does not answer.
class environment : public fabric::launch {
 public:
  /// Throws `unavailable` when MPI has been finalised already.
  environment();
  ~environment() override;

  // The launch is MPI_COMM_WORLD.
  [[nodiscard]] int rank() const override;
  [[nodiscard]] int size() const override;
  [[nodiscard]] std::vector<std::string> gather(const std::string& mine) override;
  [[nodiscard]] const std::vector<int>& first_of_host() const override { return first_of_host_; }
  [[nodiscard]] const std::vector<std::string>& hosts() const override { return hosts_; }

 private:
  bool ours_ = false;
  std::vector<int> first_of_host_;
  std::vector<std::string> hosts_;
};

/// The configuration of a run; the same on all ranks of the communicator.
struct config {
  rma::topology machine = rma::topology::flat(1);
  std::string waiting = "auto";  ///< "auto", "spin", "yield" or "park"
  std::uint32_t words_per_rank = 1u << 17;
  int processors = 0;  ///< of a machine, to assume for `waiting`; 0: as many as there are
  /// A communicator as MPI_Comm_c2f gives it, whose first ranks are the run's; without it
  /// MPI_COMM_WORLD. (In the standard's binary interface, here and below: MPI_Comm_toint.)
  std::optional<int> communicator{};
  /// If all nodes of the topology share memory, they reach each other with CPU instructions. If
  /// this is false they use MPI between them wherever they are.
  bool shared_nodes = false;
  /// The program around uses MPI too, and its one-sided operations may need their target's
  /// progress: a waiting rank serves others all the time and does not sleep.
  bool serves = false;
  /// Of a membership: a rank that yields while it waits also does so while MPI carries out its
  /// operations. Else only where MPI itself would never yield.
  bool patient = false;
  /// Of a membership: cells are zeroed by membership::clear before they are used, part by part, and
  /// cells that are never used take no memory where the system allows it. Else all are zeroed.
  bool in_parts = false;
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
  /// A port of the same ranks with memory of its own and the communicators of the other membership,
  /// which are limited in number. Both may go first. Throws `unavailable`, on all ranks alike.
  membership(const membership& beside, std::uint32_t words_per_rank);
  ~membership();
  membership(const membership&) = delete;
  membership& operator=(const membership&) = delete;

  [[nodiscard]] port& access();
  [[nodiscard]] const rma::topology& machine() const;
  /// A communicator of its ranks, as MPI_Comm_c2f gives it, which returns errors. For messages
  /// between ranks only.
  [[nodiscard]] int communicator() const;

  /// Zeroes these words of this rank's cells, with config::in_parts. All ranks must have called it
  /// and met before a rank uses them.
  void clear(std::uint32_t first, std::uint32_t count);

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// The machine of a communicator, as MPI_Comm_c2f gives it: a node consists of the ranks that can
/// share memory. LOCKFLIGHT_MPI_NODES=k cuts every machine's
/// ranks into k nodes, for tests. Collective. Throws `unavailable` when MPI is not initialised or
/// is finalised, std::invalid_argument on MPI_COMM_NULL or, on all ranks, if k is no number.
[[nodiscard]] rma::topology nodes_of(int communicator);

/// The first rank's text, on every rank of a communicator as MPI_Comm_c2f gives it. Collective.
/// Throws as nodes_of does.
[[nodiscard]] std::string first_rank_says(std::string mine, int communicator);

/// Agrees about a step that may have failed on one rank alone. Each rank of a communicator as
/// MPI_Comm_c2f gives it passes why it failed, or nothing if all is well there. If a rank has
/// failed, all throw `unavailable`, with its words. Collective.
void agree(const std::string& why, int communicator);

using fabric::abandon;

/// The levels of the first `ranks` ranks of MPI_COMM_WORLD: the launch, its nodes (the ranks that
/// can share memory, by MPI_Comm_split_type), and below them what hwloc finds there, if the nodes
/// are alike. LOCKFLIGHT_MPI_NODES=k cuts every machine's ranks into k nodes, for tests.
/// Collective.
[[nodiscard]] fabric::levels discover(int ranks);

/// Zeroed memory for the first `ranks` ranks of MPI_COMM_WORLD; ranks of one host share it. Its
/// construction and destruction are collective.
class host_memory {
 public:
  host_memory(environment& in, int ranks, std::size_t bytes);
  ~host_memory();
  host_memory(const host_memory&) = delete;
  host_memory& operator=(const host_memory&) = delete;

  /// Null on ranks beyond the first `ranks`.
  [[nodiscard]] std::byte* data() const { return data_; }
  /// The lowest rank that shares the memory with this one.
  [[nodiscard]] rma::rank_t leader() const { return leader_; }
  /// True if all `ranks` ranks share the memory.
  [[nodiscard]] bool whole() const { return whole_; }

 private:
  struct handles;
  std::unique_ptr<handles> handles_;
  std::byte* data_ = nullptr;
  rma::rank_t leader_ = 0;
  bool whole_ = true;
};

using fabric::host_findings;

/// Properties of an MPI's one-sided communication, found in a short trial on this launch.
struct findings : fabric::findings {
  std::string standard;
  std::string thread_level;
  bool unified = false;        ///< windows are made, and are MPI_WIN_UNIFIED
  std::string refused{};       ///< why not, in MPI's words
  bool shares_memory = false;  ///< MPI_Win_allocate_shared works among the ranks of a machine
  bool mixed_atomic = false;   ///< sum, replace and compare-and-swap on one word, with each other
  double waiting_us = 0;       ///< a fetch-add to a target that waits in MPI; the median
  double computing_us = 0;     ///< the longest to a target that computes for `computed_us`
  double computed_us = 0;
  double plain_flush_us = 0;    ///< a fetch-add completed by MPI_Win_flush; the median
  double blocked_flush_us = 0;  ///< the longest; more ranks than cores make it wait
  double iprobe_us = 0;         ///< one step of progress
};

/// Tries this MPI with all ranks of MPI_COMM_WORLD; some seconds. Collective; the result is rank
/// 0's. With one rank there is no target to try, and the times are 0.
[[nodiscard]] findings probe();

}  // namespace lockflight::mpi
