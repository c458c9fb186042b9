// Operations that wait on their way to one card, at the routers where their ways come together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockflight::sim {

/// The ways to a card make a tree, whose root is the card's own router. Each router lets one of its
/// inputs go after the other, and who goes first at an input was decided in the same way at the
/// router before. So an input that many share gives each of them little, and those near the card
/// get more. Routers keep nothing themselves: it is as if all buffers were full.
class crossroads {
 public:
  /// One more that waits; it came from `node` over these links, the last of them the card's.
  void enter(std::span<const std::uint32_t> links, std::uint32_t node, std::uint32_t operation);

  [[nodiscard]] bool empty() const { return inputs_.empty() || inputs_.front().waiting == 0; }

  /// Whose turn it is. There must be one.
  [[nodiscard]] std::uint32_t take();

 private:
  struct source {
    std::uint32_t name;    // a link's, or a node's
    std::uint32_t number;  // of the input
  };
  /// A link, or what comes from a node: then it leads nowhere, and operations stand in it.
  struct input {
    std::uint32_t waiting = 0;            // here and beyond
    std::uint32_t turn = 0;               // of `from`: who is next
    std::vector<source> from{};           // the inputs of the router that it comes from
    std::vector<std::uint32_t> stands{};  // operations, those before `first` are gone
    std::size_t first = 0;
  };

  [[nodiscard]] std::uint32_t input_of(std::uint32_t name, std::uint32_t into);

  std::vector<input> inputs_;  // the first: the card
};

}  // namespace lockflight::sim
