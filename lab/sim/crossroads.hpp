// Operations that wait on their way to one card, at the routers where their routes meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockflight::sim {

/// The routes to a card form a tree, whose root is the card's own router. Each router serves its
/// inputs round robin, and the order at an input was decided in the same way at the router before.
/// So an input that many operations share gives each of them little, and operations from near the
/// card get more. Routers have no buffers here: it is as if all buffers were full.
class crossroads {
 public:
  /// Adds an operation that waits. It came from `node` over these links, the last of which is the
  /// card's.
  void enter(std::span<const std::uint32_t> links, std::uint32_t node, std::uint32_t operation);

  [[nodiscard]] bool empty() const { return inputs_.empty() || inputs_.front().waiting == 0; }

  /// Removes the next operation and returns it. There must be one.
  [[nodiscard]] std::uint32_t take();

 private:
  struct source {
    std::uint32_t name;    // a link's, or a node's
    std::uint32_t number;  // of the input
  };
  /// An input of a router: a link, or a node, in which operations wait.
  struct input {
    std::uint32_t waiting = 0;            // operations here and behind it
    std::uint32_t turn = 0;               // the next of `from`
    std::vector<source> from{};           // the inputs of the router that it comes from
    std::vector<std::uint32_t> stands{};  // operations; those before `first` have left
    std::size_t first = 0;
  };

  [[nodiscard]] std::uint32_t input_of(std::uint32_t name, std::uint32_t into);

  std::vector<input> inputs_;  // the first: the card
};

}  // namespace lockflight::sim
