// lockflight doctor's measurements of this MPI on this launch.
#include <algorithm>
#include <string>
#include <vector>

#include "base/median.hpp"
#include "fabric/mpi/probe_hosts.hpp"
#include "fabric/mpi/segment.hpp"
#include "fabric/mpi/timing.hpp"
#include "fabric/mpi/trial.hpp"

namespace lockflight::mpi {
namespace {

using detail::check;
using detail::communicator;
using detail::meet;

constexpr std::uint32_t words = detail::words_of_trials;
static_assert(words >= detail::words_probed);
constexpr std::uint32_t counter = 8;
constexpr detail::repetition samples{.most = 200, .seconds = 2};

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  PMPI_Get_library_version(text, &length);
  std::string line(text, static_cast<std::size_t>(length));
  line = line.substr(0, line.find('\n'));
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line.substr(0, line.find(", package"));
}

std::string standard() {
  int version = 0;
  int subversion = 0;
  PMPI_Get_version(&version, &subversion);
  return "MPI " + std::to_string(version) + "." + std::to_string(subversion);
}

std::string thread_level() {
  int level = 0;
  PMPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE     ? "multiple"
         : level == MPI_THREAD_SERIALIZED ? "serialized"
         : level == MPI_THREAD_FUNNELED   ? "funneled"
                                          : "single";
}

/// Sends rank 1's measurement to rank 0.
void send_to_first(const communicator& all, double& value) {
  constexpr int tag = 3;
  if (all.rank() == 1) check(PMPI_Send(&value, 1, MPI_DOUBLE, 0, tag, all.get()), "MPI_Send");
  if (all.rank() == 0)
    check(PMPI_Recv(&value, 1, MPI_DOUBLE, 1, tag, all.get(), MPI_STATUS_IGNORE), "MPI_Recv");
}

void measure(const communicator& all, const detail::segment& cells, findings& found) {
  const bool origin = all.rank() == 1;
  for (const bool patient : {true, false}) {
    detail::link l(all, cells.exposed(), patient);
    meet(all);
    std::vector<double> times;
    if (origin) times = detail::times_of_fetch_add(samples, l, 0, counter);
    double middle = median_of(times);
    double longest = detail::longest(times);
    meet(all);
    send_to_first(all, middle);
    send_to_first(all, longest);
    if (patient) {
      found.waiting_us = middle;
    } else {
      found.plain_flush_us = middle;
      found.blocked_flush_us = longest;
    }
  }
  constexpr double computed_s = 0.3;
  found.computed_us = computed_s * detail::us_in_s;
  detail::link l(all, cells.exposed(), /*patient=*/detail::spins_in_flush);
  meet(all);
  found.computing_us = detail::longest_while_computing(all, l, 1, 0, counter, computed_s, samples);
  meet(all);
  send_to_first(all, found.computing_us);

  constexpr int probes = 1000;
  const double start = PMPI_Wtime();
  for (int i = 0; i < probes; ++i) l.progress();
  found.iprobe_us = (PMPI_Wtime() - start) / probes * detail::us_in_s;
  meet(all);
}

}  // namespace

findings probe() {
  const communicator all = communicator::duplicate(MPI_COMM_WORLD);
  const communicator machine = communicator::of_machine(all.get());
  findings found;
  found.library = library_version();
  found.standard = standard();
  found.thread_level = thread_level();
  found.ranks = all.size();
  found.cores = detail::processors_of(machine);
  found.hosts_count = machine.rank() == 0 ? 1 : 0;
  detail::combine(all, &found.hosts_count, 1, MPI_INT, MPI_SUM);
  try {
    const communicator alone = communicator::split(all.get(), all.rank());
    detail::segment cells(all, alone, words, /*only_cpu=*/false);
    cells.clear();
    found.unified = true;
    if (all.size() > 1) measure(all, cells, found);
    found.hosts = detail::probe_hosts(all, cells);
    cells.clear();
    const detail::atomicity atomics = detail::try_atomics(all, cells);
    found.fetch_add_atomic = atomics.fetch_add;
    found.compare_swap_atomic = atomics.compare_swap;
    found.mixed_atomic = atomics.mixed;
  } catch (const unavailable& e) {
    found.refused = e.what();
    return found;  // the same on all ranks: windows are made together
  }
  const detail::segment shared(all, machine, words, /*only_cpu=*/true);
  found.shares_memory = true;
  return found;
}

}  // namespace lockflight::mpi
