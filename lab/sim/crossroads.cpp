#include "lab/sim/crossroads.hpp"

#include <ranges>

namespace lockflight::sim {

void crossroads::enter(std::span<const std::uint32_t> links, std::uint32_t node,
                       std::uint32_t operation) {
  constexpr std::uint32_t a_node = std::uint32_t{1} << 31;
  if (inputs_.empty()) inputs_.emplace_back();
  std::uint32_t at = 0;
  ++inputs_[at].waiting;
  for (const std::uint32_t link : links | std::views::reverse) {
    at = input_of(link, at);
    ++inputs_[at].waiting;
  }
  input& last = inputs_[input_of(a_node | node, at)];
  ++last.waiting;
  last.stands.push_back(operation);
}

std::uint32_t crossroads::input_of(std::uint32_t name, std::uint32_t into) {
  for (const source& s : inputs_[into].from)
    if (s.name == name) return s.number;
  const auto number = static_cast<std::uint32_t>(inputs_.size());
  inputs_.emplace_back();
  inputs_[into].from.push_back({name, number});
  return number;
}

// An empty tree is reused only if it is small: in a large machine most cards are busy now and then,
// with operations from everywhere.
std::uint32_t crossroads::take() {
  constexpr std::size_t most_kept = 16;
  std::uint32_t at = 0;
  for (;;) {
    input& here = inputs_[at];
    --here.waiting;
    if (here.from.empty()) {
      const std::uint32_t operation = here.stands[here.first++];
      if (2 * here.first >= here.stands.size()) {
        here.stands.erase(here.stands.begin(),
                          here.stands.begin() + static_cast<std::ptrdiff_t>(here.first));
        here.first = 0;
      }
      if (empty() && inputs_.size() > most_kept) inputs_ = {};
      return operation;
    }
    do {
      at = here.from[here.turn].number;
      here.turn = here.turn + 1 == here.from.size() ? 0 : here.turn + 1;
    } while (inputs_[at].waiting == 0);
  }
}

}  // namespace lockflight::sim
