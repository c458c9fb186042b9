#include "bindings/c/config.hpp"

#include "lockflight/lock/part/queue_tree.hpp"

namespace lockflight::capi {
namespace {

/// "levels '2x' (accepted: …)".
[[nodiscard]] std::vector<int> fanouts_of(const char* levels) {
  try {
    return rma::parse_levels(levels);
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(std::string("levels ") + e.what());
  }
}

}  // namespace

std::optional<rma::topology> levels_of(const lockflight_config& what) {
  const std::vector<int> fanouts =
      what.levels != nullptr ? fanouts_of(what.levels) : std::vector<int>{1};
  const auto depth = static_cast<int>(fanouts.size());
  if (depth > lock::most_levels)
    throw std::invalid_argument("levels '" + std::string(what.levels) + "' (accepted: at most " +
                                std::to_string(lock::most_levels) + " levels)");
  if (what.node_level < 0 || what.node_level > depth)
    throw std::invalid_argument("node_level " + std::to_string(what.node_level) +
                                " (accepted: 0 to " + std::to_string(depth) + ", the levels)");
  if (what.levels == nullptr) return std::nullopt;
  return rma::topology::balanced(fanouts, what.node_level);
}

void refuse_members_of_runs(const lockflight_config& what) {
  const auto refuse = [](const char* member, int value) {
    if (value != 0)
      throw std::invalid_argument(std::string(member) + " " + std::to_string(value) +
                                  " (accepted: 0; it is lockflight_run's)");
  };
  refuse("ranks", what.ranks);
  refuse("threads", what.threads);
  refuse("unpinned", what.unpinned);
}

rma::topology levels_or(const lockflight_config& what, rma::topology found, const char* of) {
  auto given = levels_of(what);
  if (!given) return found;
  if (given->ranks() != found.ranks())
    throw std::invalid_argument("levels '" + std::string(what.levels) +
                                "' (accepted: levels that multiply to " +
                                std::to_string(found.ranks()) + ", the ranks of " + of + ")");
  return *std::move(given);
}

}  // namespace lockflight::capi
