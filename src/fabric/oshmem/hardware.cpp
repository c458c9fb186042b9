// The levels of a launch, and memory that the ranks of a host share.
#include <algorithm>

#include "fabric/network/host_nodes.hpp"
#include "fabric/oshmem/world.hpp"

namespace lockflight::oshmem {

fabric::levels discover(environment& in, int ranks) {
  detail::world& w = in.parts();
  const fabric::detail::wanted_nodes cut("LOCKFLIGHT_OSHMEM_NODES");
  for (const std::string& why : w.gather(cut.why_not))
    if (!why.empty()) throw std::invalid_argument(why);
  return fabric::detail::levels_of(fabric::detail::nodes_of_hosts(w.first_of_host, ranks, cut.each),
                                   w.rank, [&](const std::string& mine) { return w.gather(mine); });
}

host_memory::host_memory(environment& in, int ranks, std::size_t bytes) {
  detail::world& w = in.parts();
  own_ = detail::symmetric(bytes).release();
  const auto& first = w.first_of_host;
  whole_ = std::count(first.begin(), first.begin() + ranks, 0) == ranks;
  if (w.rank >= ranks) return;
  leader_ = first[static_cast<std::size_t>(w.rank)];
  data_ = w.reach(own_, leader_);
}

host_memory::~host_memory() { detail::symmetric::free(own_); }

}  // namespace lockflight::oshmem
