#include "bench/mpi/launch.hpp"

#include "bench/port/any_clock.hpp"
#include "bench/port/any_port.hpp"
#include "bench/port/clock.hpp"

namespace lockflight::bench {

namespace {

/// Runs a lock once: collective, this process is a rank.
void run_ranks(const anywhere& lock, const run_plan& plan, const run_results& results) {
  const mpi::config what{
      .machine = plan.machine, .waiting = plan.waiting, .words_per_rank = lock.words(plan)};
  const tick_clock clock = tick_clock::calibrated();
  const auto act = [&](auto& port) {
    any_port_on on(port);
    lock.run_rank(on, what.words_per_rank, plan, any_clock::on(clock), results);
  };
  mpi::run_ports(what, [&](mpi::port& bare) {
    fabric::counting<mpi::port> counted(bare);
    if (!plan.trace) return act(counted);
    fabric::tracing traced(counted, fabric::trace_buffer(results.trace_room(bare.rank()),
                                                         results.of(bare.rank()).trace_used));
    act(traced);
  });
}

}  // namespace

/// Results in memory that the ranks of each machine share. The witness lies there too: it sees
/// violations among ranks of one machine. It cannot see two holders on different machines; the lost
/// increments of wcsb show them only where all ranks share a machine.
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
  run_ranks(lock, plan, results);
  if (results.whole()) return;
  // Each machine's ticks count from a moment of its own, so they are sent relative to its start.
  const std::uint64_t started = results.common().started;
  if (rank() < plan.machine.ranks() && results.leader() != 0) {
    results.of(rank()).begun -= started;
    results.of(rank()).ended -= started;
  }
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
    if (rank() != 0 || !came) continue;
    of.begun += started;
    of.ended += started;
  }
}

launch::diagnosis mpi_launch::diagnose() {
  const mpi::findings f = mpi::probe();
  const auto us = [](double value) {
    std::string text = std::to_string(value);
    text.resize(text.find('.') + (value < 100 ? 3 : 0));
    return text + " us";
  };
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
  const bool delays = f.computing_us > f.computed_us / 2;
  const bool blocks = f.ranks > f.cores && f.blocked_flush_us > 1'000;
  rows.emplace_back("fetch-add, the target waits in MPI", us(f.waiting_us));
  rows.emplace_back("the same with MPI_Win_flush alone",
                    us(f.plain_flush_us) + ", at most " + us(f.blocked_flush_us));
  rows.emplace_back("fetch-add, the target computes for " + us(f.computed_us),
                    "at most " + us(f.computing_us));
  rows.emplace_back("one-sided operations between ranks 1 and 0",
                    delays ? "emulated: the target must call MPI" : "one-sided");
  rows.emplace_back("one step of progress", us(f.iprobe_us));
  if (delays)
    found.advice.push_back(
        "A target that computes without calling MPI delays operations on its memory for as long "
        "as it computes. Place contended locks at ranks that wait, call MPI often, or give the "
        "library a progress thread (MPICH: MPICH_ASYNC_PROGRESS=1).");
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
