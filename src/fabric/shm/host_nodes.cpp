#include "fabric/shm/host_nodes.hpp"

#include <cstdlib>
#include <map>
#include <utility>

namespace lockflight::fabric::detail {

wanted_nodes::wanted_nodes(const char* variable) {
  const char* const given = std::getenv(variable);
  if (given == nullptr || *given == '\0') return;
  char* end = nullptr;
  const long nodes = std::strtol(given, &end, 10);
  constexpr long most = 1 << 20;
  if (*end != '\0' || nodes < 1 || nodes > most)
    why_not = std::string(variable) + " '" + given +
              "' (accepted: the number of nodes to cut each host into, from 1)";
  else
    each = static_cast<int>(nodes);
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

}  // namespace lockflight::fabric::detail
