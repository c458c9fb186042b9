#include "bench/ucx/launch.hpp"

namespace lockflight::bench {

/// Results in memory that the ranks of each host share. The usual witness lies there too: it sees
/// violations among ranks of one host; for two holders on different hosts a plan has `far_witness`.
struct ucx_launch::shared_results {
  ucx::host_memory memory;
  run_results results;

  shared_results(ucx::environment& in, const run_plan& plan)
      : memory(in, plan.machine.ranks(), run_results::bytes_for(plan)),
        results(plan, memory.data(), memory.leader(), memory.whole()) {}
};

void ucx_launch::start() {
  if (!world_) world_.emplace();
}

std::shared_ptr<const run_results> ucx_launch::results(const run_plan& plan) {
  current_ = std::make_shared<shared_results>(*world_, plan);
  return {current_, &current_->results};
}

void ucx_launch::run(const anywhere& lock, const run_plan& plan, const run_results& results) {
  const tick_clock& timed_by = clock();
  const ucx::config what{
      .machine = plan.machine, .waiting = plan.waiting, .words_per_rank = lock.words(plan)};
  ucx::run_ports(*world_, what,
                 [&](ucx::port& p) { run_rank_on(p, lock, plan, timed_by, results); });
  // Ranks beyond the plan's have no results, and the next exchange is all ranks'.
  if (world_->all(rank() >= plan.machine.ranks() || results.whole())) return;
  bring_to_first(plan, results,
                 rank() < plan.machine.ranks() ? start_of_run(timed_by, results) : moment{});
}

launch::diagnosis ucx_launch::diagnose() {
  const ucx::findings f = ucx::probe(*world_);
  diagnosis found;
  found.usable = f.fetch_add_atomic && f.compare_swap_atomic;
  const std::string lost = "no: some were lost";
  found.findings = {{"library", f.library},
                    {"transports", f.transports},
                    {"atomics", f.atomics},
                    {"ranks", std::to_string(f.ranks) + " on " + std::to_string(f.hosts_count) +
                                  (f.hosts_count == 1 ? " host, " : " hosts, ") +
                                  std::to_string(f.cores) + " cores on the first"},
                    {"fetch-add atomic", f.fetch_add_atomic ? "yes" : lost},
                    {"compare-swap atomic", f.compare_swap_atomic ? "yes" : lost}};
  const bool delays = add_hosts(found, f.hosts, ucx::port::capabilities.ordered_posts);
  if (f.ranks == 1)
    found.advice.push_back(
        "Start at least two ranks to learn what an operation costs (LOCKFLIGHT_RENDEZVOUS, "
        "LOCKFLIGHT_RANK, LOCKFLIGHT_RANKS).");
  if (delays)
    found.advice.push_back(
        "A target that computes delays operations on its memory for as long as it computes, since "
        "its software does them. Place contended locks at ranks that wait, or have a thread for it "
        "(LOCKFLIGHT_PROGRESS=thread).");
  if (f.ranks > 1 && f.hosts_count == 1)
    found.advice.push_back(
        "All ranks are on one host: locks on a machine of one node use UCX for messages alone.");
  return found;
}

}  // namespace lockflight::bench
