// Short trials of an MPI's properties.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/mpi/calls.hpp"
#include "fabric/mpi/segment.hpp"

namespace lockflight::mpi::detail {

/// The trials use the first words_of_trials words of each rank's cells. The caller zeroes them
/// before a trial, which leaves other values there.
inline constexpr std::uint32_t words_of_trials = 64;

/// The read-modify-writes that lost no update while all ranks of `all` did them on one word.
struct atomicity {
  bool fetch_add = false;
  bool compare_swap = false;
  bool mixed = false;  ///< sum, replace and compare-and-swap on one word
};

/// On the cells of all ranks of `all`. Collective; the same on all ranks. Some milliseconds.
[[nodiscard]] atomicity try_atomics(const communicator& all, const segment& cells);

/// True if the last rank's operations on the first rank's memory complete while the first rank
/// computes. Collective, the same on all ranks; some milliseconds.
[[nodiscard]] bool answers_while_computing(const communicator& all, const segment& cells);

/// The hardware threads that the ranks of a machine may use together, however each is bound.
/// Collective over `machine`.
[[nodiscard]] int processors_of(const communicator& machine);

/// Each rank's host, by rank, the first 63 characters. Collective.
[[nodiscard]] std::vector<std::string> names_of_hosts(const communicator& all);

}  // namespace lockflight::mpi::detail
