// A launch over hosts: ranks that a launcher or a rendezvous has brought together, and the
// configuration of a run on them. All fabrics over hosts have such launches; mpi has a
// configuration of its own, since its runs may be those of any communicator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockflight/rma/topology.hpp"

namespace lockflight::fabric {

/// The ranks of a launch. Members are collective over them unless marked local.
class launch {
 public:
  virtual ~launch() = default;
  launch(const launch&) = delete;
  launch& operator=(const launch&) = delete;

  /// Local.
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Each rank's text, by rank.
  [[nodiscard]] virtual std::vector<std::string> gather(const std::string& mine) = 0;
  /// For each rank the lowest rank with which it can share memory. Local.
  [[nodiscard]] virtual const std::vector<int>& first_of_host() const = 0;
  /// The name of each rank's host. Local.
  [[nodiscard]] virtual const std::vector<std::string>& hosts() const = 0;

  /// True if `holds` is true on every rank.
  [[nodiscard]] bool all(bool holds);
  /// Rank 0's value.
  [[nodiscard]] double first(double mine);
  /// The least of all ranks' values.
  [[nodiscard]] double least(double mine);

 protected:
  launch() = default;
};

/// The configuration of a run; the same on all ranks.
struct run_config {
  rma::topology machine = rma::topology::flat(1);
  std::string waiting = "auto";  ///< "auto", "spin", "yield" or "park"
  std::uint32_t words_per_rank = 1u << 17;
  int processors = 0;  ///< of a host, to assume for `waiting`; 0: as many as there are
  /// If all nodes of the topology share memory, they reach each other with CPU instructions. If
  /// this is false they use the network between them wherever they are.
  bool shared_nodes = false;
};

/// The levels of ranks of a launch.
struct levels {
  rma::topology machine;
  std::vector<std::string> level_names;  ///< [level - 1]
};

/// Prints what failed on standard error, and ends this process with exit code 3. The launcher ends
/// the other ranks then, or they notice. Any thread may call this, also one that may not use the
/// network, and while another thread is inside a call of the network's library.
[[noreturn]] void abandon(const std::string& why);

}  // namespace lockflight::fabric
