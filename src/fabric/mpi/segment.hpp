// The memory of a run: each rank's cells, shared within its node, exposed to the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/mpi/calls.hpp"

namespace lockflight::mpi::detail {

/// Collective over its ranks, as is its destruction.
class segment {
 public:
  /// `node` holds those of `all` that share memory and may use it; `only_cpu` makes no MPI window
  /// for the rest, since there is none. Throws `unavailable`, on all ranks alike, without
  /// MPI_WIN_UNIFIED or if one of them cannot have its memory or window.
  /// `in_parts`: memory is taken as cells are used, where the system can.
  segment(const communicator& all, const communicator& node, std::uint32_t words, bool only_cpu,
          bool in_parts = false);
  ~segment();
  segment(const segment&) = delete;
  segment& operator=(const segment&) = delete;

  /// Zeroes this rank's cells (C22), which MPI does not promise even of fresh memory. All ranks
  /// must have called it and met before a rank uses them.
  void clear();
  /// The same for some of its cells.
  void clear(std::uint32_t first, std::uint32_t count);

  /// [rank]: the address of its cells in this process, null on other nodes. Its bells lie in
  /// front of them.
  [[nodiscard]] const std::vector<std::byte*>& base() const { return base_; }
  /// The cells of all ranks in words, under one lock_all epoch; MPI_WIN_NULL if only the CPU is
  /// used.
  [[nodiscard]] MPI_Win exposed() const { return exposed_.get(); }

 private:
  window shared_;
  window exposed_;
  std::vector<std::byte*> base_;
  std::byte* mine_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint32_t zero_from_ = UINT32_MAX;  // this word and all behind it have never been used
};

}  // namespace lockflight::mpi::detail
