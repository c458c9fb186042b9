// lockflight doctor's measurements: whether a network's atomics are atomic, and the cost of
// operations between hosts.
#include <numeric>
#include <utility>
#include <vector>

#include "fabric/network/launched.hpp"
#include "fabric/network/trial.hpp"
#include "fabric/wired/segment.hpp"

namespace lockflight::wired {

findings probe(environment& in) {
  detail::world& w = in.parts();
  findings found;
  detail::description its = w.net->describe();
  found.library = std::move(its.library);
  found.transports = std::move(its.transports);
  found.atomics = std::move(its.atomics);
  // Each rank is a node of its own: all operations go through the network.
  std::vector<int> node_of(static_cast<std::size_t>(w.size()));
  std::iota(node_of.begin(), node_of.end(), 0);
  w.start_progress_thread();
  ++w.runs;
  const detail::segment cells(w, node_of, /*together=*/false, fabric::detail::words_of_trial,
                              /*only_cpu=*/false);
  const wait_policy policy = wait_policy::parse("auto", w.size(), w.processors);
  const auto net = w.net->connect(w, cells, /*patient=*/policy.spins == 0);
  fabric::detail::try_network({.ranks = in, .processors = w.processors, .meet = [&] { w.meet(); }},
                              *net, found);
  w.meet();
  return found;
}

}  // namespace lockflight::wired
