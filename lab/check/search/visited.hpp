// The states seen so far: a set of 64-bit keys, 8 bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockflight::check {

/// Open addressing with linear probing; at most three quarters full. A key is never 0.
class visited {
 public:
  explicit visited(std::size_t capacity = std::size_t{1} << 16) : slots_(capacity) {}

  /// True if `key` was not in the set.
  bool insert(std::uint64_t key) {
    if (4 * (size_ + 1) > 3 * slots_.size()) grow();
    if (!place(slots_, key)) return false;
    ++size_;
    return true;
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t bytes() const { return slots_.size() * sizeof(std::uint64_t); }
  void clear() {
    slots_.assign(slots_.size(), 0);
    size_ = 0;
  }

 private:
  [[nodiscard]] static bool place(std::vector<std::uint64_t>& slots, std::uint64_t key) {
    const std::size_t mask = slots.size() - 1;
    for (std::size_t i = key & mask;; i = (i + 1) & mask) {
      if (slots[i] == key) return false;
      if (slots[i] == 0) {
        slots[i] = key;
        return true;
      }
    }
  }

  void grow() {
    std::vector<std::uint64_t> larger(2 * slots_.size());
    for (const std::uint64_t key : slots_)
      if (key != 0) static_cast<void>(place(larger, key));
    slots_.swap(larger);
  }

  std::vector<std::uint64_t> slots_;
  std::size_t size_ = 0;
};

}  // namespace lockflight::check
