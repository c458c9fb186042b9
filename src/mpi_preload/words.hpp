// The words of a segment: the ranges that are in use, and the free ones.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace lockflight::mpi_preload {

/// Hands out ranges of words and takes them back, the lowest first.
class word_ranges {
 public:
  word_ranges(std::uint32_t first, std::uint32_t end) { free_.emplace(first, end); }

  /// Takes a free range of `count` words and returns its beginning; nothing if there is no such
  /// range.
  [[nodiscard]] std::optional<std::uint32_t> take(std::uint32_t count) {
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      const auto [first, end] = *at;
      if (end - first < count) continue;
      free_.erase(at);
      if (first + count < end) free_.emplace(first + count, end);
      return first;
    }
    return std::nullopt;
  }

  void give_back(std::uint32_t first, std::uint32_t count) {
    std::uint32_t end = first + count;
    const auto behind = free_.find(end);
    if (behind != free_.end()) {
      end = behind->second;
      free_.erase(behind);
    }
    const auto after = free_.lower_bound(first);
    if (after != free_.begin() && std::prev(after)->second == first)
      std::prev(after)->second = end;
    else
      free_.emplace(first, end);
  }

 private:
  std::map<std::uint32_t, std::uint32_t> free_;  // [first]: end; no two of them touch
};

}  // namespace lockflight::mpi_preload
