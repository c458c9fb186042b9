// What happens next: a heap of moments.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/time.hpp"

namespace lockflight::sim {

/// What an event is about. The number beside it is a rank or an operation.
enum class happening : std::uint8_t {
  resume,  ///< a rank goes on
  arrive,  ///< an operation reaches its target's network interface
  effect,  ///< an operation takes effect there
};

struct event {
  time_ps at;
  happening what;
  std::uint32_t about;
};

/// The earliest first; of those at one moment, the one that was pushed first. So a run is the same
/// each time. Sixteen bytes an event, four children a node: a pop touches half the lines that it
/// would with two.
class event_queue {
 public:
  static constexpr std::uint32_t most_numbers = 1u << 24;

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  /// The moment of the next event; the end of time if there is none.
  [[nodiscard]] time_ps next() const { return heap_.empty() ? ~time_ps{0} : heap_.front().at; }

  void push(time_ps at, happening what, std::uint32_t about) {
    assert(about < most_numbers);
    const entry made{at, pushed_++ << order_shift | std::uint64_t{static_cast<std::uint8_t>(what)}
                                                         << number_bits |
                             about};
    std::size_t hole = heap_.size();
    heap_.push_back(made);
    while (hole > 0) {
      const std::size_t parent = (hole - 1) / fanout;
      if (!made.before(heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = made;
  }

  event pop() {
    const entry first = heap_.front();
    const entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    return {first.at, static_cast<happening>(first.low >> number_bits & kind_mask),
            static_cast<std::uint32_t>(first.low & (most_numbers - 1))};
  }

 private:
  static constexpr std::size_t fanout = 4;
  static constexpr int number_bits = 24;
  static constexpr int order_shift = number_bits + 2;
  static constexpr std::uint64_t kind_mask = 3;

  struct entry {
    time_ps at;
    std::uint64_t low;  // order of pushing, kind, number

    [[nodiscard]] bool before(const entry& other) const {
      return at != other.at ? at < other.at : low < other.low;
    }
  };

  void sink(const entry& moved) {
    std::size_t hole = 0;
    const std::size_t size = heap_.size();
    while (true) {
      const std::size_t first = hole * fanout + 1;
      if (first >= size) break;
      const std::size_t end = first + fanout < size ? first + fanout : size;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child)
        if (heap_[child].before(heap_[least])) least = child;
      if (!heap_[least].before(moved)) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = moved;
  }

  std::vector<entry> heap_;
  std::uint64_t pushed_ = 0;
};

}  // namespace lockflight::sim
