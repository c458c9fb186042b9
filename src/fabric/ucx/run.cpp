// A run: its ranks, the body, and the end.
#include <string>

#include "fabric/shm/launched.hpp"
#include "fabric/ucx/link.hpp"

namespace lockflight::ucx {
namespace {

using detail::world;

wait_policy policy_of(const world& in, const config& what) {
  int here = 0;
  for (rma::rank_t r = 0; r < what.machine.ranks(); ++r) here += in.same_host(r, in.rank()) ? 1 : 0;
  return fabric::detail::policy_of(what.waiting, here,
                                   what.processors > 0 ? what.processors : in.processors);
}

}  // namespace

void run_ports(environment& in, const config& what, const std::function<void(port&)>& body) {
  world& w = in.parts();
  fabric::detail::require_machine(what.machine, w.first_of_host);
  const wait_policy policy = policy_of(w, what);  // or throws
  const int ranks = what.machine.ranks();
  const bool together = what.shared_nodes && fabric::detail::on_one_host(w.first_of_host, ranks);
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
