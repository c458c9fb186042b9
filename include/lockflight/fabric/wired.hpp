// Launches whose ranks are wired up without MPI: processes that find each other at a rendezvous or
// by a launcher with PMIx, or the ranks of an MPI communicator (wired_mpi.hpp). A network library
// carries their operations: UCX (ucx.hpp) or libfabric (libfabric.hpp). Programs include one of
// these two headers and make its environment; the rest is the same and is declared here.
//
// Between nodes every operation is the library's; within a node an operation on a cpu or plain cell
// is a CPU instruction on memory that the node's ranks share. On a nic cell of the own node it is
// one, too, where the library's atomics are atomic with the CPU's.
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
#include "lockflight/rma/participant.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::wired {

/// As mpi's: `park` has an effect only where all ranks are on one node.
using wait_policy = shm::wait_policy;

/// The fabric cannot run here: the library, the rendezvous or memory refused; `what()` says what.
struct unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A rank is gone or has failed, and the run with it; `what()` names the rank and its host.
struct run_failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A rank's port. Posted operations to other nodes go through the network; operations throw
/// run_failed when another rank is gone.
using port = fabric::networked_port;

namespace detail {
struct library;
struct world;
}  // namespace detail

/// The introduction of ranks that another library has started and numbered, and which can pass on a
/// text; wired_mpi.hpp makes one of an MPI communicator.
struct introduction {
  int rank = 0;
  int ranks = 1;
  /// Rank 0's text, on all ranks. Called once on each.
  std::function<std::string(const std::string& mine)> from_first;
};

/// The ranks of a launch, the first of these that there is; one launch for each process at a time.
///
/// - LOCKFLIGHT_RENDEZVOUS, LOCKFLIGHT_RANK and LOCKFLIGHT_RANKS describe it.
/// - A launcher with PMIx has started this process: mpirun of Open MPI, prterun, srun --mpi=pmix.
/// - A launch of one rank.
///
/// The construction is collective, and so are the members unless they are marked local.
///
/// LOCKFLIGHT_PROGRESS chooses what serves other nodes while a rank computes. `calls`, the default:
/// no thread; a rank serves when it waits, locks or unlocks (C44). `thread`: a thread of each rank,
/// which sleeps on the library's event descriptor until something arrives. `auto`: a thread where
/// the target's software does the atomics.
///
/// The constructors of the libraries' environments throw std::invalid_argument on bad variables, or
/// where another launcher says that there are several ranks, and `unavailable` when the ranks do
/// not come together or the library refuses.
class environment : public fabric::launch {
 public:
  ~environment() override;

  [[nodiscard]] int rank() const override;
  [[nodiscard]] int size() const override;
  [[nodiscard]] std::vector<std::string> gather(const std::string& mine) override;
  [[nodiscard]] const std::vector<int>& first_of_host() const override;
  [[nodiscard]] const std::vector<std::string>& hosts() const override;
  /// True if the run is over because rank 0 has failed. Rank 0 cannot report that itself. Local.
  [[nodiscard]] bool first_is_gone() const;

  /// For the functions of this header. Local.
  [[nodiscard]] detail::world& parts() { return *world_; }

 protected:
  /// `by`: null for the launch that the variables or a launcher describe.
  environment(const detail::library& of, const introduction* by);

 private:
  std::unique_ptr<detail::world> world_;
};

using config = fabric::run_config;

/// Runs `body` once on each of the first ranks of the launch, as many as the machine has, and
/// returns on all ranks when all have returned. Collective. The port lives as long as the body.
///
/// Throws, on every rank alike, std::invalid_argument on a bad config, `unavailable` when there is
/// no memory for it, and run_failed when a rank's body has thrown or its process is gone (C36): the
/// launch is over then.
void run_ports(environment& in, const config& what, const std::function<void(port&)>& body);

/// The same with a participant for each rank, for programs that lock.
inline void run(environment& in, const config& what,
                const std::function<void(rma::participant<port>&)>& body) {
  run_ports(in, what, [&](port& p) {
    rma::participant<port> me(p, what.words_per_rank);
    body(me);
  });
}

/// A port for the lifetime of this object, for programs that have no body to run. Its construction
/// and its end are collective over the launch, of which all ranks are the machine's. No rank may
/// use its port once the first rank has begun to end. The launch has no other run meanwhile.
class membership {
 public:
  /// Throws as run_ports does.
  membership(environment& in, config what);
  ~membership();
  membership(const membership&) = delete;
  membership& operator=(const membership&) = delete;

  /// This rank's port, which lives as long as this object.
  [[nodiscard]] port& access();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

/// The levels of the first `ranks` ranks: the launch, its nodes, which are the hosts, and below
/// them what hwloc finds there, as many levels as on every node. LOCKFLIGHT_UCX_NODES=k (for
/// libfabric LOCKFLIGHT_LIBFABRIC_NODES) cuts every host's ranks into k nodes, for tests. The same
/// on all ranks; collective. Throws std::invalid_argument unless the launch has so many ranks, or
/// on a bad value of the variable; run_failed. Cost: one exchange.
[[nodiscard]] fabric::levels discover(environment& in, int ranks);

/// Zeroed memory for the first `ranks` ranks; ranks of one host share it.
class host_memory {
 public:
  /// Collective over all ranks. Throws on all of them: std::invalid_argument unless the launch has
  /// so many ranks, `unavailable` where there is no memory, run_failed.
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
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  rma::rank_t leader_ = 0;
  bool whole_ = true;
};

using fabric::abandon;
using fabric::host_findings;

/// Properties of the library on this launch, found in a short trial.
struct findings : fabric::findings {
  std::string transports;
  std::string atomics;  ///< the CPU or the card, which does the atomics
};
/// Collective; takes about a second for each host. It makes a run of its own, so no other may go
/// on. Throws as run_ports does.
[[nodiscard]] findings probe(environment& in);

}  // namespace lockflight::wired
