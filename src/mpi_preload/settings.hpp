// The settings in the environment and in a window's info.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lockflight/profile.hpp"
#include "mpi_preload/scheme.hpp"
#include "mpi_preload/window_group.hpp"

namespace lockflight::mpi_preload {

/// Read once, when MPI is initialised.
struct settings {
  bool off = false;         ///< LOCKFLIGHT_MPI_OFF: every call goes to MPI as it came
  bool has_nodes = false;   ///< LOCKFLIGHT_MPI_NODES: the fabric's, for tests
  bool statistics = false;  ///< LOCKFLIGHT_MPI_STATS: a table for each window at the end
  double hang_seconds = 0;  ///< LOCKFLIGHT_MPI_HANG: report ranks that wait longer; 0: never
  std::string lock;         ///< LOCKFLIGHT_MPI_LOCK: for windows whose info names none
  std::string lock_all;     ///< LOCKFLIGHT_MPI_LOCK_ALL: the same
  profile tuned;            ///< LOCKFLIGHT_PROFILE: parameters of the locks
};

[[nodiscard]] const settings& environment();

/// The scheme that this rank wants for a window. The lock: its info key lockflight_lock, its info
/// key passive_sync_mode, the environment, else the default; lock_all: its info key
/// lockflight_lock_all, the environment, else the default; the lock's parameters: the environment's
/// profile, else the default lock's by whether a machine has more ranks of the window than cores.
/// An unknown name is warned of once for each of these, on rank 0 of MPI_COMM_WORLD, and the next
/// source is used. All ranks of the window use what its first rank wants.
[[nodiscard]] scheme_name wanted_scheme(MPI_Info info, const window_group& ranks);

/// True if a rank of a window of so many ranks that locks one target again and again queues
/// before the MPI's own lock. Open MPI's targets have a queue of their own, and a single other rank
/// is too few for a queue.
[[nodiscard]] constexpr bool queues_before_mpi(std::size_t ranks) {
#if defined(OPEN_MPI)
  constexpr bool has_queue = true;
#else
  constexpr bool has_queue = false;
#endif
  constexpr std::size_t crowd = 3;
  return !has_queue && ranks >= crowd;
}

/// True if this rank wants a window of so many ranks on several hosts to have the MPI's locks and
/// nothing before them. Warns as wanted_scheme does.
[[nodiscard]] bool wants_mpi_alone_over_hosts(MPI_Info info, std::size_t ranks);

/// A scheme as ranks send it: bytes, without allocations, which might fail on one rank alone.
class scheme_message {
 public:
  scheme_message() = default;
  explicit scheme_message(const scheme_name& of);
  [[nodiscard]] scheme_name scheme() const;

 private:
  static constexpr std::size_t most_parameters = 14;
  struct field {
    std::array<char, 56> name;
    std::int64_t value;
  };
  std::array<field, 2 + most_parameters> fields_{};
};

/// The SCC paper's mode for a lock, for MPI_Win_get_info.
[[nodiscard]] const char* sync_mode_of(const std::string& lock);

}  // namespace lockflight::mpi_preload
