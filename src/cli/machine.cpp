#include "cli/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/part/distributed_counter.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::cli {

using namespace tool;

namespace {

constexpr int most_given_ranks = 1 << 20;

std::vector<int> fanouts_of(const std::string& levels) {
  std::int64_t ranks = 1;
  std::vector<int> fanouts;
  try {
    fanouts = rma::parse_levels(levels);
  } catch (const std::invalid_argument&) {
    ranks = 0;
  }
  for (const int fanout : fanouts) ranks *= fanout;
  if (ranks < 1 || ranks > most_given_ranks)
    throw refuse("--levels", levels,
                 fmt::format("positive numbers joined by x, such as 2x4, that multiply to at most "
                             "{}",
                             most_given_ranks));
  return fanouts;
}

int checked_node_level(const std::optional<std::string>& text, int levels) {
  if (!text) return 0;
  return static_cast<int>(
      whole_number("--node-level", *text, 1, static_cast<std::uint64_t>(levels)));
}

/// The same levels, with other elements for nodes.
rma::topology with_nodes_at(const rma::topology& machine, int node_level) {
  std::vector<std::vector<int>> element_of(static_cast<std::size_t>(machine.levels()));
  for (int level = 1; level <= machine.levels(); ++level)
    for (rma::rank_t r = 0; r < machine.ranks(); ++r)
      element_of[static_cast<std::size_t>(level - 1)].push_back(machine.element_of(r, level));
  return rma::topology(std::move(element_of), node_level);
}

machine_view given_machine(const std::string& levels, const std::optional<std::string>& procs,
                           const std::optional<std::string>& node_level) {
  const std::vector<int> fanouts = fanouts_of(levels);
  const int count = static_cast<int>(fanouts.size());
  const int ranks = std::accumulate(fanouts.begin(), fanouts.end(), 1, std::multiplies<>());
  if (procs && std::to_string(ranks) != *procs)
    throw refuse("--procs", *procs, fmt::format("{}, the product of --levels {}", ranks, levels));
  machine_view view{
      .machine = rma::topology::balanced(fanouts, checked_node_level(node_level, count)),
      .level_names = {"machine"}};
  for (int level = 2; level <= count; ++level)
    view.level_names.emplace_back(level == view.machine.node_level() ? "node" : "element");
  if (ranks <= shm::most_ranks) view.processor_of_rank = shm::discover(ranks).processor_of_rank;
  return view;
}

machine_view found_machine(const std::optional<std::string>& procs,
                           const std::optional<std::string>& node_level) {
  const int ranks = procs ? static_cast<int>(whole_number("--procs", *procs, 1, shm::most_ranks))
                          : std::min(shm::discover(1).processors, shm::most_ranks);
  shm::hardware hardware = shm::discover(ranks);
  const int level = checked_node_level(node_level, hardware.machine.levels());
  return {.machine = level == 0 ? hardware.machine : with_nodes_at(hardware.machine, level),
          .from_hwloc = true,
          .level_names = std::move(hardware.level_names),
          .processor_of_rank = std::move(hardware.processor_of_rank)};
}

void fill_in(machine_view& view) {
  const rma::topology& machine = view.machine;
  for (rma::rank_t r = 0; r < machine.ranks(); ++r)
    view.counter_of_rank.push_back(lock::counter_host(machine, /*t_dc=*/0, r));
  for (int level = 1; level <= machine.levels(); ++level) {
    std::vector<std::vector<int>> of_level(static_cast<std::size_t>(machine.elements(level)));
    for (rma::rank_t r = 0; r < machine.ranks(); ++r)
      of_level[static_cast<std::size_t>(machine.element_of(r, level))].push_back(r);
    view.members.push_back(std::move(of_level));
  }
}

nlohmann::ordered_json level_json(const machine_view& view, int level) {
  nlohmann::ordered_json elements = nlohmann::ordered_json::array();
  for (int element = 0; element < view.machine.elements(level); ++element) {
    const std::vector<int>& ranks = view.ranks_of(level, element);
    nlohmann::ordered_json e{
        {"element", element},
        {"parent", nullptr},
        {"ranks", ranks},
        {"tail_rank", view.machine.leader(level, element)},
    };
    if (level > 1) e["parent"] = view.machine.element_of(ranks.front(), level - 1);
    elements.push_back(std::move(e));
  }
  return {{"level", level}, {"name", view.name(level)}, {"elements", std::move(elements)}};
}

}  // namespace

std::vector<int> machine_view::children(int level, int element) const {
  std::vector<int> found;
  for (const int rank : ranks_of(level, element)) {
    const int child = machine.element_of(rank, level + 1);
    if (found.empty() || found.back() != child) found.push_back(child);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<int> machine_view::processors_of(int level, int element) const {
  std::vector<int> found;
  for (const int rank : ranks_of(level, element))
    found.push_back(processor_of_rank[static_cast<std::size_t>(rank)]);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<int> machine_view::counters_of(int node) const {
  std::vector<int> hosts;
  for (const int rank : ranks_of(machine.node_level(), node))
    if (counter_of_rank[static_cast<std::size_t>(rank)] == rank) hosts.push_back(rank);
  return hosts;
}

std::string machine_view::ranks_in_each(int level) const {
  const auto& elements = members[static_cast<std::size_t>(level - 1)];
  const auto smaller = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  const auto [least, most] = std::minmax_element(elements.begin(), elements.end(), smaller);
  if (least->size() == most->size()) return std::to_string(most->size());
  return fmt::format("{}-{}", least->size(), most->size());
}

machine_view look_at_machine(const std::optional<std::string>& levels,
                             const std::optional<std::string>& procs,
                             const std::optional<std::string>& node_level) {
  machine_view view =
      levels ? given_machine(*levels, procs, node_level) : found_machine(procs, node_level);
  fill_in(view);
  return view;
}

nlohmann::ordered_json machine_json(const machine_view& view) {
  const rma::topology& machine = view.machine;
  nlohmann::ordered_json levels = nlohmann::ordered_json::array();
  for (int level = 1; level <= machine.levels(); ++level) levels.push_back(level_json(view, level));
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (rma::rank_t r = 0; r < machine.ranks(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    ranks.push_back({{"rank", r},
                     {"node", machine.node_of(r)},
                     {"processor", nullptr},
                     {"counter_rank", view.counter_of_rank[at]}});
    if (view.knows_processors()) ranks.back()["processor"] = view.processor_of_rank[at];
  }
  return {{"source", view.from_hwloc ? "hwloc" : "given"},
          {"procs", machine.ranks()},
          {"nodes", machine.nodes()},
          {"node_level", machine.node_level()},
          {"levels", std::move(levels)},
          {"ranks", std::move(ranks)}};
}

}  // namespace lockflight::cli
