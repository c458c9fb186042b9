// The segments of all ranks, and which cores have which cache line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lab/sim/time.hpp"
#include "lockflight/rma/cell.hpp"

namespace lockflight::sim {

/// Eight words of memory and their state in the machine. Zeroes are a cache line that no core has.
struct cache_line {
  static constexpr std::uint32_t words = 8;

  std::uint64_t holders;          ///< cores that have it, by their number modulo 64
  std::uint64_t busy_until : 54;  ///< no core gets it, or its atomic unit, before that (5 hours)
  std::uint64_t owner : 10;       ///< the last writer: a core, counted from 1; 0: a NIC, or none
  rma::word cells[words];         // NOLINT(modernize-avoid-c-arrays): lies in mapped memory

  static constexpr std::uint32_t most_cores = (1u << 10) - 1;
  static constexpr time_ps most_time = (time_ps{1} << 54) - 1;

  void keep_busy(time_ps until) { busy_until = until & most_time; }
  void owned_by(std::uint32_t core) { owner = (core + 1) & most_cores; }
};
static_assert(sizeof(cache_line) == 80);

/// The memory of all ranks in one mapping; the kernel commits a page when it is touched. Line i of
/// all ranks lies together, since all ranks use the same parts of their segments: so a million
/// ranks take no more memory than the cache lines that they touch.
class memory {
 public:
  /// Throws std::system_error if there is too little address space.
  memory(std::uint32_t ranks, std::uint32_t words_each);
  ~memory();
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;

  [[nodiscard]] std::uint32_t words_each() const { return words_each_; }
  [[nodiscard]] cache_line& line(rma::rank_t home, std::uint32_t index) const {
    return lines_[static_cast<std::size_t>(index / cache_line::words) * ranks_ +
                  static_cast<std::size_t>(home)];
  }
  [[nodiscard]] rma::word& cell(rma::rank_t home, std::uint32_t index) const {
    return line(home, index).cells[index % cache_line::words];
  }

 private:
  std::uint32_t words_each_;
  std::size_t ranks_;
  std::size_t bytes_;
  cache_line* lines_;
};

}  // namespace lockflight::sim
