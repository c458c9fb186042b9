// The group of a launch's processes: a rank, a number of ranks, an exchange of bytes.
// The source of the ranks' numbers, a user's variables, a launcher with PMIx or an MPI
// communicator, makes no difference once the processes are together: each has a connection
// to rank 0 (star.hpp).
//
// Cost: rare and small; nothing here is on the path of a lock.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace lockflight::wireup {

/// The launch cannot begin or go on; `what()` is one line that names the ranks.
struct launch_failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A rank that is gone.
struct loss {
  std::string name;     ///< "rank 1 on host1"
  bool silent = false;  ///< the rank's host does not answer; else the process has ended

  /// "rank 1 on host1 is gone: its process has ended".
  [[nodiscard]] std::string what() const;
};

/// The processes of a launch. All make the same calls of the collective members, in the same order.
class group {
 public:
  virtual ~group() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Each rank's bytes, by rank. Collective. It calls `meanwhile`, if there is one, again and again
  /// while it waits. Throws launch_failed when a rank is gone or has called fail().
  [[nodiscard]] virtual std::vector<std::string> all_gather(
      const std::string& mine, const std::function<void()>& meanwhile = nullptr) = 0;
  /// Collective; as all_gather.
  virtual void barrier(const std::function<void()>& meanwhile = nullptr) = 0;

  /// Throws launch_failed when a rank is gone or has called fail(). A system call or two.
  virtual void check() = 0;
  /// Reports a failure to the other ranks, on which check() then throws this text. The launch is
  /// over.
  virtual void fail(const std::string& why) = 0;

  /// For ranks that exchange nothing more: sleeps until another rank is gone without leave(), and
  /// returns which. Rank 0 notices every rank, the others notice rank 0. Nothing once all of these
  /// have left, or rank 0 has reported that one is gone, or the descriptor `until` is readable.
  [[nodiscard]] virtual std::optional<loss> await_loss(int until) = 0;
  /// Disconnects cleanly: the end of this rank is no loss from here on. For ranks that exchange
  /// nothing more.
  virtual void leave() = 0;
};

/// Joins the launch that the environment describes, the first of these:
///
/// - LOCKFLIGHT_RENDEZVOUS=HOST:PORT, LOCKFLIGHT_RANK=i, LOCKFLIGHT_RANKS=n: rank 0 listens there
///   and the others connect, in any order.
/// - PMIX_NAMESPACE, from a launcher with PMIx (mpirun of Open MPI, prterun, srun --mpi=pmix): the
///   launcher numbers the ranks, and tells them where rank 0 listens.
/// - neither: a launch of one rank.
///
/// LOCKFLIGHT_RENDEZVOUS_TIMEOUT is how many seconds all ranks have to come, by default 30.
///
/// Throws std::invalid_argument on variables that are wrong in themselves, and where another
/// launcher says that there are several ranks; launch_failed when the ranks do not come together.
[[nodiscard]] std::unique_ptr<group> join();

/// Ranks that another library has started and numbered, and which can pass on a text: for example
/// those of an MPI communicator.
struct introduction {
  int rank = 0;
  int ranks = 1;
  /// Rank 0's text, on all ranks. Called once on each.
  std::function<std::string(const std::string& mine)> from_first;
  /// How long all have to come; nothing: as LOCKFLIGHT_RENDEZVOUS_TIMEOUT says.
  std::optional<std::chrono::seconds> within{};
};
/// Joins them: rank 0 listens at a free port, which it passes on. Throws as join() does.
[[nodiscard]] std::unique_ptr<group> join(const introduction& by);

/// The name of this host.
[[nodiscard]] std::string host_name();

}  // namespace lockflight::wireup
