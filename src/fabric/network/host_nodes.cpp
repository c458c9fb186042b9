#include "fabric/network/host_nodes.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/number.hpp"
#include "lockflight/fabric/shm.hpp"

namespace lockflight::fabric::detail {
namespace {

/// A level below a node.
struct level_below {
  std::string name;
  std::vector<int> element_of;  ///< of the node's ranks, in their order
};

/// The levels that this rank finds for so many ranks, as a text: for each level a line with its
/// name, and one with the elements. If hwloc fails there are none: the node is then the smallest
/// element.
std::string levels_found_here(int ranks) {
  std::ostringstream text;
  try {
    const shm::hardware found = shm::discover(ranks);
    for (int level = 2; level <= found.machine.levels(); ++level) {
      text << found.level_names[static_cast<std::size_t>(level - 1)] << '\n';
      for (rma::rank_t r = 0; r < ranks; ++r) text << found.machine.element_of(r, level) << ' ';
      text << '\n';
    }
  } catch (const std::runtime_error&) {
    return "";
  }
  return text.str();
}

std::vector<level_below> levels_in(const std::string& text) {
  std::vector<level_below> found;
  std::istringstream lines(text);
  std::string name;
  std::string elements;
  while (std::getline(lines, name) && std::getline(lines, elements)) {
    found.push_back({name, {}});
    std::istringstream numbers(elements);
    for (int element = 0; numbers >> element;) found.back().element_of.push_back(element);
  }
  return found;
}

}  // namespace

wanted_nodes::wanted_nodes(const char* variable) {
  const char* const given = std::getenv(variable);
  if (given == nullptr || *given == '\0') return;
  constexpr int most = 1 << 20;
  const auto nodes = read_number<int>(given);
  if (!nodes || *nodes < 1 || *nodes > most)
    why_not = std::string(variable) + " '" + given +
              "' (accepted: the number of nodes to cut each host into, from 1)";
  else
    each = *nodes;
}

rma::topology nodes_of_hosts(const std::vector<int>& first_of_host, int ranks, int nodes_each) {
  std::map<int, int> ranks_of_host;  // by the host's first rank
  for (int r = 0; r < ranks; ++r) ++ranks_of_host[first_of_host[static_cast<std::size_t>(r)]];
  std::map<int, int> before;  // ranks of that host that have a node already
  std::map<std::pair<int, int>, int> number;
  std::vector<int> node_of;
  for (int r = 0; r < ranks; ++r) {
    const int host = first_of_host[static_cast<std::size_t>(r)];
    const int part = before[host]++ * nodes_each / ranks_of_host[host];
    node_of.push_back(
        number.emplace(std::pair(host, part), static_cast<int>(number.size())).first->second);
  }
  if (number.size() == 1) return rma::topology::flat(ranks);
  std::vector<int> root(node_of.size(), 0);
  return rma::topology({std::move(root), std::move(node_of)}, 2);
}

levels levels_of(const rma::topology& nodes, int rank, const gather_function& gather) {
  const std::vector<int>& node_of = nodes.nodes_of_ranks();
  const bool leads =
      rank < nodes.ranks() && nodes.leader_of(rank, nodes.node_level()) == rma::rank_t{rank};
  const auto ranks_here = [&] { return std::ranges::count(node_of, nodes.node_of(rank)); };
  const std::vector<std::string> said =
      gather(leads ? levels_found_here(static_cast<int>(ranks_here())) : "");

  std::vector<std::vector<int>> element_of{std::vector<int>(node_of.size(), 0)};
  std::vector<std::string> names{"launch"};
  if (nodes.nodes() > 1) {
    element_of.push_back(node_of);
    names.emplace_back("node");
  }
  const auto node_level = static_cast<int>(element_of.size());
  std::vector<std::vector<level_below>> below;  // [node]
  std::size_t depth = shm::most_levels - element_of.size();
  for (int node = 0; node < nodes.nodes(); ++node) {
    const rma::rank_t leader = nodes.leader(nodes.node_level(), node);
    below.push_back(levels_in(said[static_cast<std::size_t>(leader)]));
    depth = std::min(depth, below.back().size());
  }
  for (std::size_t i = 0; i < depth; ++i) {
    std::map<std::pair<int, int>, int> number;      // of a node's element
    std::vector<std::size_t> before(below.size());  // ranks of the node that have theirs already
    std::vector<int> level;
    for (const int node : node_of) {
      const auto n = static_cast<std::size_t>(node);
      const int element = below[n][i].element_of[before[n]++];
      level.push_back(
          number.emplace(std::pair(node, element), static_cast<int>(number.size())).first->second);
    }
    element_of.push_back(std::move(level));
    names.push_back(below.front()[i].name);
  }
  return {rma::topology(std::move(element_of), node_level), std::move(names)};
}

}  // namespace lockflight::fabric::detail
