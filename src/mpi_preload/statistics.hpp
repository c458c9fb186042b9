// The counts for LOCKFLIGHT_MPI_STATS.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "mpi_preload/scheme.hpp"
#include "mpi_preload/window_group.hpp"

namespace lockflight::mpi_preload {

enum class lock_kind : std::uint8_t { exclusive, shared, all };
constexpr int lock_kinds = 3;
[[nodiscard]] const char* to_string(lock_kind k);

/// A process's counts of a window.
struct window_statistics {
  std::array<std::uint64_t, lock_kinds> locks{};
  std::array<double, lock_kinds> waited_s{};
  double longest_wait_s = 0;
  std::vector<std::uint64_t> handoffs;  ///< [level - 1]: the last holder shares that level with us
  std::vector<std::uint32_t> waited_for;  ///< [rank]: how often it held the lock when we came
};

/// Adds up all ranks' counts and returns them as text, empty except on rank 0. Collective.
[[nodiscard]] std::string tell(const window_statistics& mine, const std::string& window,
                               const scheme_name& scheme, window_group& group,
                               const window_place& at);

/// Stores the text until MPI_Finalize, which prints it.
void keep_for_the_end(const std::string& text);
void print_what_was_kept();

}  // namespace lockflight::mpi_preload
