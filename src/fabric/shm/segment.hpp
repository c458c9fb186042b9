// The mapping that all ranks of a run share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lockflight/fabric/shm.hpp"

namespace lockflight::shm::detail {

/// The head of the mapping.
struct control {
  std::atomic<std::uint32_t> aborted{0};    ///< a rank failed; waits throw
  std::atomic<std::uint32_t> reporting{0};  ///< taken by the first rank that has something to say
  rma::rank_t failed_rank = -1;
  std::array<char, 1024> failure{};  ///< the report of a rank that failed

  /// Reports the first rank that fails; other failing ranks only stop.
  void report(rma::rank_t rank, const std::string& how);

  std::atomic<std::uint32_t> stores_are_fenced{0};  ///< ranks sleep often (bell::stores_fence)

  bool may_lose = false;  ///< a rank that is killed is lost, and the others go on (C39)
  std::atomic<std::uint32_t> losses{0};
  std::array<rma::rank_t, most_ranks> lost{};  ///< the first `losses` of them

  /// True if a rank is among the first `of_first` lost ranks, at most as many as `losses` was when
  /// the caller read it.
  [[nodiscard]] bool is_lost(rma::rank_t rank, std::uint32_t of_first) const {
    const auto* const end = lost.begin() + of_first;
    return std::find(lost.begin(), end, rank) != end;
  }
};

/// Owns the mapping. It has no name in the file system (memfd), so it ends with the last process
/// that maps it, however that process ends.
class segment {
 public:
  segment(int ranks, std::uint32_t words_per_rank);
  ~segment();
  segment(const segment&) = delete;
  segment& operator=(const segment&) = delete;

  [[nodiscard]] const segment_view& view() const { return view_; }

  /// Announces that a rank's process has ended. Called by the launcher's thread only.
  void lose(rma::rank_t rank) const;

 private:
  int ranks_;
  void* base_ = nullptr;
  std::size_t bytes_ = 0;
  segment_view view_;
};

/// The most words that a rank can have: the largest power of two that an index reaches.
constexpr std::uint32_t most_words = 1u << 31;

/// The number of words of a rank, rounded as the segment needs it.
[[nodiscard]] std::uint32_t rounded_words(std::uint32_t words);

}  // namespace lockflight::shm::detail
