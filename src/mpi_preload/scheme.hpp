// The locks of a window, by the names of the lock on its targets and of the way to lock all of
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lockflight/fabric/mpi.hpp"
#include "lockflight/lock/parameters.hpp"
#include "lockflight/lock/window/window_memory.hpp"

namespace lockflight::mpi_preload {

/// The defaults.
constexpr const char* default_lock = "flight-rw";
constexpr const char* default_lock_all = "groups";
/// The old name of `groups`.
constexpr const char* old_name_of_groups = "rooms";

/// The way for ranks on several hosts, where each operation waits for its target's process, and so
/// a lock costs what its round trips cost. MPI's own locks have the fewest round trips, but many
/// ranks that ask one target make it busy. So the locks are left to MPI, and ranks that lock a
/// target again and again first queue for it: one rank at a time asks MPI.
constexpr const char* way_of_mpi = "mpi";
constexpr const char* default_queue = "flight";

/// The names of a window's locks.
struct scheme_name {
  std::string lock;      ///< on each target
  std::string lock_all;  ///< how locking all and exclusive locks exclude each other
  /// The parameters of the lock on each target; parameters not named have their defaults.
  lock::parameter_values parameters = {};

  friend bool operator==(const scheme_name&, const scheme_name&) = default;
};

/// This process's locks on one window. Not thread-safe.
class scheme {
 public:
  virtual ~scheme() = default;

  virtual void lock(int target) = 0;
  virtual void unlock(int target) = 0;
  virtual void lock_shared(int target) = 0;
  virtual void unlock_shared(int target) = 0;
  virtual void lock_all() = 0;
  virtual void unlock_all() = 0;
};

[[nodiscard]] bool is_lock(const std::string& name);
/// "spin, spin-backoff, …", for messages.
[[nodiscard]] std::string all_locks();

[[nodiscard]] bool is_way(const std::string& name);
/// "groups, global, mpi".
[[nodiscard]] std::string all_ways();

/// "T_R=100 T_L2=8", for messages; empty: all have their defaults.
[[nodiscard]] std::string said_of_parameters(const scheme_name& name);

/// The words that a window has in each rank's segment besides its locks: the holder, and the
/// last holder.
constexpr std::uint32_t words_of_observers = 2 * rma::line_words;

/// The memory that a window's locks take on this machine.
struct scheme_memory {
  std::uint32_t words = 0;   ///< of each rank's segment, used or not
  lock::window_memory used;  ///< with the observers' words
};
[[nodiscard]] scheme_memory memory_of(const scheme_name& name, const rma::topology& machine);

/// Collective in the sense of the contract (C20): every rank makes the same.
[[nodiscard]] std::unique_ptr<scheme> make_scheme(const scheme_name& name,
                                                  rma::participant<mpi::port>& me);

}  // namespace lockflight::mpi_preload
