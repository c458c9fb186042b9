// The levels of a launch, and memory that the ranks of a host share.
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "fabric/network/host_nodes.hpp"
#include "fabric/network/launched.hpp"
#include "fabric/wired/segment.hpp"

namespace lockflight::wired {

fabric::levels discover(environment& in, int ranks) {
  detail::world& w = in.parts();
  fabric::detail::require_ranks(ranks, w.size());
  const fabric::detail::wanted_nodes cut(w.nodes_variable);
  w.agree<std::invalid_argument>(cut.why_not);
  return fabric::detail::levels_of(fabric::detail::nodes_of_hosts(w.first_of_host, ranks, cut.each),
                                   w.rank(),
                                   [&](const std::string& mine) { return w.gather(mine); });
}

host_memory::host_memory(environment& in, int ranks, std::size_t bytes) : bytes_(bytes) {
  detail::world& w = in.parts();
  fabric::detail::require_ranks(ranks, w.size());
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

}  // namespace lockflight::wired
