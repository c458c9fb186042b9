#include "lab/bench/mpi/launch.hpp"

#include "lab/bench/launched/diagnosis.hpp"

namespace lockflight::bench {

launch::diagnosis over_mpi::diagnose(environment&) {
  const mpi::findings f = mpi::probe();
  launch::diagnosis found;
  found.hosts = f.hosts;
  found.ordered_posts = mpi::port::capabilities.ordered_posts;
  found.usable =
      f.unified && f.shares_memory && f.fetch_add_atomic && f.compare_swap_atomic && f.mixed_atomic;
  auto& rows = found.findings;
  rows = {{"library", f.library},
          {"standard", f.standard},
          {"threads", f.thread_level},
          {"ranks", ranks_on(f, "machine")},
          {"unified memory model", f.unified ? "yes" : "no: " + f.refused},
          {"shared windows", yes_or(f.shares_memory, "no")}};
  if (!f.unified || !f.shares_memory) {
    found.advice.push_back("This MPI cannot carry lockflight's locks.");
    return found;
  }
  rows.emplace_back("fetch-and-op atomic", yes_or(f.fetch_add_atomic, some_were_lost));
  rows.emplace_back("compare-and-swap atomic", yes_or(f.compare_swap_atomic, some_were_lost));
  rows.emplace_back("sum, replace and compare-and-swap atomic together",
                    yes_or(f.mixed_atomic, some_were_lost));
  if (!found.usable)
    found.advice.push_back("The library refuses machines of several nodes on this MPI.");
  if (f.ranks == 1) {
    found.advice.push_back("Start at least two ranks to learn what a target does to an origin.");
    return found;
  }
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
  if (f.hosts_count == 1)
    found.advice.push_back(
        "All ranks are on one machine: locks on a machine of one node use no MPI at all, and none "
        "of this touches them.");
  return found;
}

template class launch_over<over_mpi>;

}  // namespace lockflight::bench
