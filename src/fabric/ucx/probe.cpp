// lockflight doctor's measurements: whether UCX's atomics are, and what operations between hosts
// cost.
#include <cstdlib>
#include <numeric>
#include <vector>

#include "fabric/shm/network_trial.hpp"
#include "fabric/ucx/link.hpp"

namespace lockflight::ucx {

findings probe(environment& in) {
  detail::world& w = in.parts();
  findings found;
  found.library = std::string("UCX ") + ucp_get_version_string();
  const char* const transports = std::getenv("UCX_TLS");
  found.transports = transports != nullptr ? transports : "all that UCX finds (UCX_TLS)";
  found.atomics = w.net->atomics_by_cpu() ? "the CPU's (UCX_ATOMIC_MODE=cpu)"
                                          : "the card's (UCX_ATOMIC_MODE=device)";
  found.ranks = w.size();
  found.cores = w.processors;
  // Each rank a node of its own: all goes through UCX.
  std::vector<int> node_of(static_cast<std::size_t>(w.size()));
  std::iota(node_of.begin(), node_of.end(), 0);
  w.help_while_computing();
  ++w.runs;
  const detail::segment cells(w, node_of, /*together=*/false, fabric::detail::words_of_trial,
                              /*only_cpu=*/false);
  const wait_policy policy = wait_policy::parse("auto", w.size(), w.processors);
  detail::link net(w, cells, /*patient=*/policy.spins == 0);
  const fabric::detail::trial_launch launch{
      .rank = w.rank(),
      .size = w.size(),
      .processors = w.processors,
      .first_of_host = w.first_of_host,
      .hosts = w.hosts,
      .meet = [&] { w.meet(); },
      .gather = [&](const std::string& mine) { return w.gather(mine); }};
  const auto atomic = fabric::detail::try_atomics(launch, net);
  found.fetch_add_atomic = atomic.fetch_add;
  found.compare_swap_atomic = atomic.compare_swap;
  found.hosts = fabric::detail::try_hosts(launch, net);
  found.hosts_count = found.hosts.empty() ? 1 : static_cast<int>(found.hosts.size());
  w.meet();
  return found;
}

}  // namespace lockflight::ucx
