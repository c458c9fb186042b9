// The queue of events: a heap, ordered by their moments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/sim/time.hpp"
#include "lockflight/rma/assert.hpp"

namespace lockflight::sim {

/// The kind of an event. The number beside it is a rank, an operation or a node.
enum class happening : std::uint8_t {
  resume,  ///< a rank continues
  arrive,  ///< an operation reaches its target's network interface
  effect,  ///< an operation takes effect there
  admit,   ///< a node's network interface takes an operation that waits for it on its way
};

struct event {
  time_ps at;
  happening what;
  std::uint32_t about;
};

/// The earliest first; of those at one moment, the one that was pushed first. So a run is the same
/// each time. Sixteen bytes an event, four children a node: a pop touches half the cache lines that
/// it would with two.
class event_queue {
 public:
  static constexpr std::uint32_t most_numbers = 1u << 24;

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  /// The moment of the next event; the end of time if there is none.
  [[nodiscard]] time_ps next() const {
    return heap_.empty() ? ~time_ps{0} : static_cast<time_ps>(heap_.front() >> 64);
  }

  /// The next event. There must be one.
  [[nodiscard]] event first() const { return unpacked(heap_.front()); }

  void push(time_ps at, happening what, std::uint32_t about) {
    rma::ensure(about < most_numbers, "an event's number has 24 bits");
    const auto kind = std::uint64_t{static_cast<std::uint8_t>(what)};
    const std::uint64_t low = pushed_++ << order_shift | kind << number_bits | about;
    heap_.push_back(entry{at} << 64 | low);
    rise(heap_.size() - 1);
  }

  event pop() {
    rma::ensure(!heap_.empty(), "something happens next");
    const entry first = heap_.front();
    const entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) replace_first(last);
    return unpacked(first);
  }

 private:
  static constexpr std::size_t fanout = 4;
  static constexpr int number_bits = 24;
  static constexpr int order_shift = number_bits + 2;
  static constexpr std::uint64_t kind_mask = 3;

  // The moment; below it the order of pushing, the kind, the number. One number, so that the
  // smaller of two is found without a branch, which the processor could not predict.
  __extension__ using entry = unsigned __int128;

  static event unpacked(entry packed) {
    const auto low = static_cast<std::uint64_t>(packed);
    return {static_cast<time_ps>(packed >> 64),
            static_cast<happening>(low >> number_bits & kind_mask),
            static_cast<std::uint32_t>(low & (most_numbers - 1))};
  }

  void rise(std::size_t hole) {
    const entry moved = heap_[hole];
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / fanout;
      if (moved >= heap_[parent]) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = moved;
  }

  // The hole at the top goes down to a leaf along the smallest children, and the last entry rises
  // from there: it comes from the bottom and seldom goes far up again.
  void replace_first(const entry& last) {
    const std::size_t size = heap_.size();
    std::size_t hole = 0;
    std::size_t first = 1;
    while (first + fanout <= size) {
      const std::size_t left = heap_[first + 1] < heap_[first] ? first + 1 : first;
      const std::size_t right = heap_[first + 3] < heap_[first + 2] ? first + 3 : first + 2;
      const std::size_t least = heap_[right] < heap_[left] ? right : left;
      heap_[hole] = heap_[least];
      hole = least;
      first = hole * fanout + 1;
    }
    if (first < size) {
      std::size_t least = first;
      for (std::size_t child = first + 1; child < size; ++child)
        least = heap_[child] < heap_[least] ? child : least;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = last;
    rise(hole);
  }

  std::vector<entry> heap_;
  std::uint64_t pushed_ = 0;
};

}  // namespace lockflight::sim
