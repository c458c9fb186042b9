// A run: its ranks, the body, and the end.
#include <algorithm>
#include <string>

#include "fabric/ucx/link.hpp"

namespace lockflight::ucx {
namespace {

using detail::world;

/// Throws, on all ranks alike, unless the launch has such a machine.
void require_machine(const world& in, const config& what) {
  const int ranks = what.machine.ranks();
  if (ranks > in.size())
    throw std::invalid_argument(std::to_string(ranks) + " ranks (accepted: 1 to " +
                                std::to_string(in.size()) + ", the ranks of this launch)");
  for (rma::rank_t r = 0; r < ranks; ++r)
    if (!in.same_host(r, what.machine.leader_of(r, what.machine.node_level())))
      throw std::invalid_argument(
          "a node of the machine given spans several hosts of this launch, whose memory cannot be "
          "shared (accepted: levels whose nodes keep to one)");
}

bool on_one_host(const world& in, int ranks) {
  for (rma::rank_t r = 0; r < ranks; ++r)
    if (!in.same_host(0, r)) return false;
  return true;
}

wait_policy policy_of(const world& in, const config& what) {
  int here = 0;
  for (rma::rank_t r = 0; r < what.machine.ranks(); ++r) here += in.same_host(r, in.rank()) ? 1 : 0;
  const int cores = what.processors > 0 ? what.processors : in.processors;
  wait_policy policy = wait_policy::parse(what.waiting, std::max(here, 1), cores);
  // With a core for each rank a waiting rank uses its core; then no store has to check for
  // sleepers.
  if (what.waiting == "auto" && policy.spins > 0) policy.park = false;
  return policy;
}

}  // namespace

void run_ports(environment& in, const config& what, const std::function<void(port&)>& body) {
  world& w = in.parts();
  require_machine(w, what);
  const wait_policy policy = policy_of(w, what);  // or throws
  const int ranks = what.machine.ranks();
  const bool together = what.shared_nodes && on_one_host(w, ranks);
  const bool only_cpu = what.machine.nodes() == 1 || together;
  if (!only_cpu) w.help_while_computing();
  ++w.runs;
  const detail::segment cells(w, what.machine.nodes_of_ranks(), together, what.words_per_rank,
                              only_cpu);
  if (w.rank() >= ranks) return w.sleep_until_all_have_come();
  std::string why;
  try {
    detail::link link(w, cells, /*patient=*/policy.spins == 0);
    port p(w.rank(), what.machine, cells.base(),
           {.only = only_cpu, .nic_cells = w.net->atomics_by_cpu()}, policy, link);
    body(p);
    p.flush();  // operations that the body left
    // Progress goes on until all ranks have returned, since they may still use our cells (C35).
    w.meet();
    return;
  } catch (const run_failed&) {
    throw;
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {
    why = "an exception of unknown type";
  }
  why = w.name_of(w.rank()) + " failed: " + why;
  w.fail(why);
  throw run_failed(why);
}

}  // namespace lockflight::ucx
