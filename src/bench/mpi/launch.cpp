#include "bench/mpi/launch.hpp"

namespace lockflight::bench {

/// Results in memory that the ranks of each machine share. The usual witness lies there too: it
/// sees violations among ranks of one machine, and not two holders on different machines; for these
/// a plan has `far_witness`.
struct mpi_launch::shared_results {
  mpi::machine_memory memory;
  run_results results;

  explicit shared_results(const run_plan& plan)
      : memory(plan.machine.ranks(), run_results::bytes_for(plan)),
        results(plan, memory.data(), memory.leader(), memory.whole()) {}
};

void mpi_launch::start() {
  if (!world_) world_.emplace();
}

std::shared_ptr<const run_results> mpi_launch::results(const run_plan& plan) {
  current_ = std::make_shared<shared_results>(plan);
  return {current_, &current_->results};
}

void mpi_launch::run(const anywhere& lock, const run_plan& plan, const run_results& results) {
  const tick_clock& timed_by = clock();
  const mpi::config how{
      .machine = plan.machine, .waiting = plan.waiting, .words_per_rank = lock.words(plan)};
  mpi::run_ports(how, [&](mpi::port& p) { run_rank_on(p, lock, plan, timed_by, results); });
  if (results.whole()) return;
  const moment start = start_of_run(timed_by, results);
  if (rank() < plan.machine.ranks() && results.leader() != 0)
    move_times(results.of(rank()), results.trace_room(rank()), -start);
  mpi::machine_memory& memory = current_->memory;
  memory.barrier();
  for (rma::rank_t r = 1; r < plan.machine.ranks(); ++r) {
    rank_result& of = results.of(r);
    const auto offset = [&](const void* what) {
      return static_cast<std::size_t>(static_cast<const std::byte*>(what) - memory.data());
    };
    const bool came = memory.bring_to_first(r, offset(&of), sizeof of);
    const auto events = results.trace_room(r);
    if (!events.empty())
      static_cast<void>(memory.bring_to_first(r, offset(events.data()), events.size_bytes()));
    if (rank() == 0 && came) move_times(of, events, start);
  }
}

launch::diagnosis mpi_launch::diagnose() {
  const mpi::findings f = mpi::probe();
  const auto yes = [](bool holds, const char* otherwise) {
    return std::string(holds ? "yes" : otherwise);
  };
  diagnosis found;
  found.usable =
      f.unified && f.shares_memory && f.fetch_add_atomic && f.compare_swap_atomic && f.mixed_atomic;
  auto& rows = found.findings;
  rows = {{"library", f.library},
          {"standard", f.standard},
          {"threads", f.thread_level},
          {"ranks", std::to_string(f.ranks) + " on " + std::to_string(f.machines) +
                        (f.machines == 1 ? " machine, " : " machines, ") + std::to_string(f.cores) +
                        " cores on the first"},
          {"unified memory model", f.unified ? "yes" : "no: " + f.refused},
          {"shared windows", yes(f.shares_memory, "no")}};
  if (!f.unified || !f.shares_memory) {
    found.advice.push_back("This MPI cannot carry lockflight's locks.");
    return found;
  }
  const std::string lost = "no: some were lost";
  rows.emplace_back("fetch-and-op atomic", f.fetch_add_atomic ? "yes" : lost);
  rows.emplace_back("compare-and-swap atomic", f.compare_swap_atomic ? "yes" : lost);
  rows.emplace_back("sum, replace and compare-and-swap atomic together",
                    f.mixed_atomic ? "yes" : lost);
  if (!found.usable)
    found.advice.push_back("The library refuses machines of several nodes on this MPI.");
  if (f.ranks == 1) {
    found.advice.push_back("Start at least two ranks to learn what a target does to an origin.");
    return found;
  }
  static_cast<void>(add_hosts(found, f.hosts, mpi::port::capabilities.ordered_posts));
  const bool delays = f.computing_us > f.computed_us / 2;
  const bool blocks = f.ranks > f.cores && f.blocked_flush_us > 1'000;
  rows.emplace_back("fetch-add, the target waits in MPI", microseconds(f.waiting_us));
  rows.emplace_back(
      "the same with MPI_Win_flush alone",
      microseconds(f.plain_flush_us) + ", at most " + microseconds(f.blocked_flush_us));
  rows.emplace_back("fetch-add, the target computes for " + microseconds(f.computed_us),
                    "at most " + microseconds(f.computing_us));
  rows.emplace_back("one-sided operations between ranks 1 and 0",
                    delays ? "emulated: the target must call MPI" : "one-sided");
  rows.emplace_back("one step of progress", microseconds(f.iprobe_us));
  if (delays)
    found.advice.push_back(
        "A target that computes without calling MPI delays operations on its memory for as long "
        "as it computes. Place contended locks at ranks that wait, call MPI often, or have a "
        "thread for it (LOCKFLIGHT_PROGRESS=thread, with MPICH).");
  if (blocks)
    found.advice.push_back(
        "With more ranks than cores this MPI spins inside MPI_Win_flush without yielding; "
        "lockflight's own waiting yields.");
  if (f.machines == 1)
    found.advice.push_back(
        "All ranks are on one machine: locks on a machine of one node use no MPI at all, and none "
        "of this touches them.");
  return found;
}

}  // namespace lockflight::bench
