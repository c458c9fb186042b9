#include "sim/crossroads.hpp"

#include <ranges>

namespace lockflight::sim {

void crossroads::enter(std::span<const std::uint32_t> links, std::uint32_t node,
                       std::uint32_t operation) {
  constexpr std::uint64_t a_node = std::uint64_t{1} << 32;
  if (inputs_.empty()) inputs_.emplace_back();
  std::uint32_t at = 0;
  ++inputs_[at].waiting;
  for (const std::uint32_t link : links | std::views::reverse) {
    at = input_of(link, at);
    ++inputs_[at].waiting;
  }
  at = input_of(a_node | node, at);
  ++inputs_[at].waiting;
  inputs_[at].stands.push_back(operation);
}

std::uint32_t crossroads::input_of(std::uint64_t name, std::uint32_t into) {
  const auto [at, is_new] = numbers_.try_emplace(name, static_cast<std::uint32_t>(inputs_.size()));
  const std::uint32_t number = at->second;
  if (is_new) {
    inputs_.emplace_back();
    inputs_[into].from.push_back(number);
  }
  return number;
}

std::uint32_t crossroads::take() {
  std::uint32_t at = 0;
  for (;;) {
    input& here = inputs_[at];
    --here.waiting;
    if (here.from.empty()) {
      const std::uint32_t operation = here.stands.front();
      here.stands.pop_front();
      return operation;
    }
    do {
      at = here.from[here.turn];
      here.turn = here.turn + 1 == here.from.size() ? 0 : here.turn + 1;
    } while (inputs_[at].waiting == 0);
  }
}

}  // namespace lockflight::sim
