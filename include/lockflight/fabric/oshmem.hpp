// The OpenSHMEM fabric: ranks are the processing elements (PEs) of a SHMEM launch. Between nodes
// every operation is SHMEM's, on the symmetric heap; within a node an operation on a cpu or plain
// cell is a CPU instruction, where shmem_ptr gives an address to it.
//
// The fabric uses OpenSHMEM 1.4 alone. The standard does not say whether SHMEM's atomics
// are atomic with the CPU's, so with several nodes nic cells are accessed through SHMEM alone,
// loopback included, and the two kinds of read-modify-write never meet on a cell (C2). Where all
// ranks share one node every cell is accessed by CPU instructions.
//
// Cost in SHMEM calls: one for a posted operation and one shmem_quiet for a flush, which an
// operation that returns a value does without; a message is three operations and a shmem_quiet.
//
// This header includes nothing of SHMEM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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

namespace lockflight::oshmem {

/// As mpi's: `park` has an effect only where all ranks are on one node.
using wait_policy = shm::wait_policy;

/// The fabric cannot run on this SHMEM or this launch; `what()` says what is missing.
struct unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A rank's port on SHMEM; it belongs to the thread that initialised SHMEM. Posted operations to
/// other nodes, and on nic cells if there are several nodes, go through SHMEM. A get is
/// shmem_get64_nbi, a put shmem_long_atomic_set: on some networks software at the target stores a
/// shmem_put's word twice, and the second store could undo another rank's.
using port = fabric::networked_port;

namespace detail {
struct world;
}

/// The part that initialises and finalises SHMEM: this object, or the program around it, as a
/// program with SHMEM calls of its own does.
enum class started_by : std::uint8_t { environment, program };

/// The SHMEM launch, or a launch of one rank without a launcher; one for each process at a time.
/// The construction is collective, and so are the members unless they are marked local. SHMEM
/// allows one initialisation in a process.
///
/// A rank serves others when it waits, locks or unlocks (C44); LOCKFLIGHT_PROGRESS is `calls` or
/// `auto`, which is the same here.
class environment : public fabric::launch {
 public:
  /// With started_by::program, between the program's shmem_init and shmem_finalize, which comes
  /// after the end of this object. Throws std::invalid_argument on a bad LOCKFLIGHT_PROGRESS,
  /// `unavailable` when the symmetric heap has no room.
  explicit environment(started_by who = started_by::environment);
  ~environment() override;

  [[nodiscard]] int rank() const override;
  [[nodiscard]] int size() const override;
  [[nodiscard]] std::vector<std::string> gather(const std::string& mine) override;
  /// The ranks of a host are those whose symmetric heaps shmem_ptr reaches: they share memory.
  [[nodiscard]] const std::vector<int>& first_of_host() const override;
  [[nodiscard]] const std::vector<std::string>& hosts() const override;

  [[nodiscard]] detail::world& parts() { return *world_; }

 private:
  std::unique_ptr<detail::world> world_;
};

using config = fabric::run_config;

/// Runs `body` once on each of the first ranks of the launch, as many as the machine has, and
/// returns on all ranks when all have returned; ranks beyond the machine sleep meanwhile. The
/// port lives as long as the body. Collective; the cells are taken from the symmetric heap, whose
/// size the launch chooses (SHMEM_SYMMETRIC_SIZE).
///
/// A rank whose body throws says so on standard error and ends the launch with exit code 3 (C36):
/// SHMEM has no way to go on without it.
///
/// Throws, on every rank alike, std::invalid_argument on a bad config, and `unavailable` when the
/// symmetric heap has no room.
void run_ports(environment& in, const config& what, const std::function<void(port&)>& body);

/// The same with a participant for each rank, for programs that lock.
inline void run(environment& in, const config& what,
                const std::function<void(rma::participant<port>&)>& body) {
  run_ports(in, what, [&](port& p) {
    rma::participant<port> me(p, what.words_per_rank);
    body(me);
  });
}

/// A port for the lifetime of this object, for programs that have no body to run, such as those in
/// C. Its construction and its end are collective over all ranks of the launch, which are the
/// machine's.
class membership {
 public:
  /// Throws as run_ports does.
  membership(environment& in, config what);
  /// Serves the others until all ranks have come (C35).
  ~membership();
  membership(const membership&) = delete;
  membership& operator=(const membership&) = delete;

  [[nodiscard]] port& access();

 private:
  struct parts;
  friend void run_ports(environment& in, const config& what,
                        const std::function<void(port&)>& body);
  std::unique_ptr<parts> parts_;
};

/// The levels of the first `ranks` ranks: the launch, its nodes, which are the hosts, and below
/// them what hwloc finds there, as many levels as on every node. LOCKFLIGHT_OSHMEM_NODES=k cuts
/// every host's ranks into k nodes, for tests. The same on all ranks; collective.
[[nodiscard]] fabric::levels discover(environment& in, int ranks);

/// Zeroed memory of the symmetric heap for the first `ranks` ranks; ranks of one host share it.
/// The construction and the destruction are collective over all ranks.
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
  std::byte* own_ = nullptr;
  std::byte* data_ = nullptr;
  rma::rank_t leader_ = 0;
  bool whole_ = true;
};

using fabric::abandon;
using fabric::host_findings;

/// Properties of SHMEM on this launch, found in a short trial.
struct findings : fabric::findings {
  /// Says whether SHMEM's atomics were atomic with CPU instructions. The trial may miss that they
  /// are not, and no port relies on it. Empty where no rank reaches another by CPU instructions.
  std::string with_cpu;
};
[[nodiscard]] findings probe(environment& in);

}  // namespace lockflight::oshmem
