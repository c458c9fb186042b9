// lockflight doctor's measurements: whether UCX's atomics are, and what operations between hosts
// cost.
#include <cstdlib>
#include <numeric>
#include <utility>
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
  auto tried = fabric::detail::try_network(
      {.ranks = in, .processors = w.processors, .meet = [&] { w.meet(); }}, net);
  found.fetch_add_atomic = tried.fetch_add_atomic;
  found.compare_swap_atomic = tried.compare_swap_atomic;
  found.hosts = std::move(tried.hosts);
  found.hosts_count = found.hosts.empty() ? 1 : static_cast<int>(found.hosts.size());
  w.meet();
  return found;
}

}  // namespace lockflight::ucx
