// The levels of a launch, and memory that the ranks of a host share.
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "fabric/ucx/segment.hpp"

namespace lockflight::ucx {
namespace {

/// What LOCKFLIGHT_UCX_NODES says, which may be something else on each rank. Throws
/// std::invalid_argument on all of them alike.
int synthetic_nodes(detail::world& in) {
  const char* const given = std::getenv("LOCKFLIGHT_UCX_NODES");
  long nodes = 1;
  std::string why;
  if (given != nullptr && *given != '\0') {
    char* end = nullptr;
    nodes = std::strtol(given, &end, 10);
    constexpr long most = 1 << 20;
    if (*end != '\0' || nodes < 1 || nodes > most)
      why = "LOCKFLIGHT_UCX_NODES '" + std::string(given) +
            "' (accepted: the number of nodes to cut each host into, from 1)";
  }
  in.agree<std::invalid_argument>(why);
  return static_cast<int>(nodes);
}

}  // namespace

hardware discover(environment& in, int ranks) {
  detail::world& w = in.parts();
  const int nodes_each = synthetic_nodes(w);
  std::map<int, int> ranks_of_host;  // by the host's first rank
  for (int r = 0; r < ranks; ++r) ++ranks_of_host[w.first_of_host[static_cast<std::size_t>(r)]];
  std::map<int, int> before;  // ranks of that host that have a node already
  std::map<std::pair<int, int>, int> number;
  std::vector<int> node_of;
  for (int r = 0; r < ranks; ++r) {
    const int host = w.first_of_host[static_cast<std::size_t>(r)];
    const int part = before[host]++ * nodes_each / ranks_of_host[host];
    node_of.push_back(
        number.emplace(std::pair(host, part), static_cast<int>(number.size())).first->second);
  }
  if (number.size() == 1) return {rma::topology::flat(ranks), {"launch"}};
  std::vector<int> root(node_of.size(), 0);
  return {rma::topology({std::move(root), std::move(node_of)}, 2), {"launch", "node"}};
}

host_memory::host_memory(environment& in, int ranks, std::size_t bytes) : bytes_(bytes) {
  detail::world& w = in.parts();
  const std::vector<int> first_of(w.first_of_host.begin(), w.first_of_host.begin() + ranks);
  detail::shared_mapping memory(w, first_of, bytes);
  whole_ = std::count(first_of.begin(), first_of.end(), 0) == ranks;
  if (w.rank() >= ranks) return;
  leader_ = first_of[static_cast<std::size_t>(w.rank())];
  data_ = memory.release();
}

host_memory::~host_memory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace lockflight::ucx
