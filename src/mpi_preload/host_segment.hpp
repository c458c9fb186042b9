// Memory that the ranks of a group on one host share: the cells of each rank, this rank's port on
// them, and the exchange of small values through them.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lockflight/fabric/mpi.hpp"

namespace lockflight::mpi_preload {

/// The words of each rank's cells by which the ranks combine values.
constexpr std::uint32_t words_of_meeting = 3 * rma::line_words;

class host_segment {
 public:
  /// How many bytes a rank's piece takes.
  [[nodiscard]] static std::size_t bytes_of_piece(std::uint32_t words);

  /// Takes over memory that is mapped: a piece for each rank, zero at first. `between_hosts` is
  /// only called for progress. Not collective.
  host_segment(void* at, std::size_t bytes, rma::rank_t rank, const rma::topology& machine,
               const mpi::wait_policy& waiting, fabric::network& between_hosts);
  ~host_segment();
  host_segment(const host_segment&) = delete;
  host_segment& operator=(const host_segment&) = delete;

  [[nodiscard]] mpi::port& port() { return *port_; }
  [[nodiscard]] std::atomic_ref<rma::word> word(rma::rank_t of, std::uint32_t index) const {
    return std::atomic_ref(
        *(reinterpret_cast<rma::word*>(base_[static_cast<std::size_t>(of)]) + index));
  }

  /// Zeroes words of this rank's cells. The words that were never used are zero.
  void clear(std::uint32_t first, std::uint32_t count);

  /// Combines `count` values of every rank in place, on every rank, by the words_of_meeting that
  /// begin at `at`, and at zero. No rank returns before all have come. Operations must commute, and
  /// the values take a cache line at most. A rank other than 0 returns false, with the values as
  /// they were, if it `gives_up` before rank 0 has come.
  bool combine(std::uint32_t at, void* values, int count, MPI_Datatype type, MPI_Op op,
               bool (*gives_up)(const host_segment&) = nullptr);

  /// After the last combine() by these words: rank 0 returns when all ranks have called, and then
  /// no rank uses the words any more.
  void report_to_first(std::uint32_t at);

  /// How many words of each rank's cells a broadcast of so many bytes takes.
  [[nodiscard]] static constexpr std::uint32_t words_of_broadcast(std::size_t bytes) {
    return rma::line_words + static_cast<std::uint32_t>(bytes / sizeof(rma::word));
  }
  /// Copies the values of rank 0 to all ranks, by words that begin at `at`, and at zero. The same
  /// number of whole words each time. A rank other than 0 returns false, with nothing copied, if it
  /// `gives_up` before rank 0 has come.
  [[nodiscard]] bool broadcast(std::uint32_t at, void* values, std::size_t bytes,
                               bool (*gives_up)(const host_segment&));

 private:
  template <class Holds>
  void wait_until(Holds holds);
  [[nodiscard]] bool wait_for_first_rank(std::uint32_t at, rma::word turn,
                                         bool (*gives_up)(const host_segment&));

  std::byte* at_;
  std::size_t bytes_;
  rma::rank_t rank_;
  bool crowded_;  // there are more ranks than cores
  fabric::network& between_hosts_;
  std::vector<std::byte*> base_;
  std::byte* mine_ = nullptr;
  std::atomic<std::uint32_t> zero_from_{0};
  std::unique_ptr<mpi::port> port_;
};

}  // namespace lockflight::mpi_preload
