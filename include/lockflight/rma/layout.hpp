// The layout of segments: hands out the cells of locks, from the bottom of a symmetric heap. A cell
// has the same index in every rank's segment.
//
// Source: OpenSHMEM's symmetric heap.
//
// Invariants: every participant makes the same requests in the same order and gets the same
// answers, without communication (C20). Index 0 is never given out (C21). All cells start as 0
// (C22), and every lock's free state is all zeroes.
//
// Cost: no network operation. Memory that no participant touches costs nothing, since fabrics
// commit segments lazily.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "lockflight/rma/cell.hpp"
#include "lockflight/rma/refuse.hpp"

namespace lockflight::rma {

/// Words of a cache line. Each block starts on a cache line of its own, so that two locks never
/// share one by accident.
constexpr std::uint32_t line_words = 8;

/// How many queue nodes a participant has: the most queue locks that it can hold or await at the
/// same time. Each node is a line, and they are the first lines that it takes from its layout.
constexpr int most_queue_nodes = 32;

/// Hands out indices that are valid in every rank's segment.
class layout {
 public:
  /// `words` is the size of each rank's segment.
  explicit layout(std::uint32_t words) : limit_(words) {}
  /// Words [first, end) of each rank's segment, which others may use too outside that range.
  layout(std::uint32_t first, std::uint32_t end)
      : next_(std::max(first, line_words)), limit_(end) {}

  /// `count` consecutive cells of the class at the same index on every rank, starting on a cache
  /// line. The home of what is returned is rank 0; `.at(rank)` names the others. Throws
  /// std::length_error when segments are full.
  template <class Cell>
  [[nodiscard]] Cell take(std::uint32_t count) {
    // In 64 bits: at the end of the largest segment the index of the next cache line has 33.
    const std::uint64_t start = (std::uint64_t{next_} + line_words - 1) / line_words * line_words;
    if (start + count > limit_)
      refuse<std::length_error>("segments are full: %u cells asked, %u of %u left", count,
                                limit_ > start ? static_cast<std::uint32_t>(limit_ - start) : 0,
                                static_cast<std::uint32_t>(limit_));
    next_ = static_cast<std::uint32_t>(start + count);
    return {0, static_cast<std::uint32_t>(start)};
  }

  [[nodiscard]] std::uint32_t used() const { return next_; }
  [[nodiscard]] std::uint32_t limit() const { return limit_; }

 private:
  std::uint32_t next_ = line_words;  // the first cache line stays unused: index 0 is null_ref (C21)
  std::uint32_t limit_;
};

}  // namespace lockflight::rma
