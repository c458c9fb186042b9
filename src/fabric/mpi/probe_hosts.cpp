#include "fabric/mpi/probe_hosts.hpp"

#include <array>
#include <map>
#include <string>

#include "base/median.hpp"
#include "fabric/mpi/timing.hpp"
#include "fabric/mpi/trial.hpp"

namespace lockflight::mpi::detail {
namespace {

constexpr std::uint32_t data = 8;
constexpr std::uint32_t counter = 16;
/// How long each operation is repeated, and how long the target computes.
constexpr double enough_s = 0.15;
constexpr repetition enough{.most = 100, .seconds = enough_s};

/// The medians of put, get, fetch-add and compare-and-swap to a rank that waits.
std::array<double, 4> latencies(link& l, rma::rank_t target) {
  rma::word got = 0;
  const auto posted = [&](remote_kind kind, std::uint32_t at, rma::word* result) {
    return median_of(times_of(enough, [&] {
      l.post(kind, target, at, 1, result);
      l.complete(target);
    }));
  };
  return {posted(remote_kind::put, data, nullptr), posted(remote_kind::get, data, &got),
          posted(remote_kind::fetch_add, counter, &got), median_of(times_of(enough, [&] {
            l.post_compare_swap(target, counter, 0, 0, &got);
            l.complete(target);
          }))};
}

void measure(const communicator& all, const segment& cells, rma::rank_t origin, rma::rank_t target,
             host_findings& found) {
  link l(all, cells.exposed(), /*patient=*/spins_in_flush);
  meet(all);
  std::array<double, 4> times{};
  if (all.rank() == origin) times = latencies(l, target);
  meet(all);  // the target serves until the origin has come
  found.computing_us = longest_while_computing(all, l, origin, target, counter, enough_s, enough);
  meet(all);
  broadcast(all, times.data(), 4, MPI_DOUBLE, origin);
  broadcast(all, &found.computing_us, 1, MPI_DOUBLE, origin);
  found.put_us = times[0];
  found.get_us = times[1];
  found.fetch_add_us = times[2];
  found.compare_swap_us = times[3];
  found.computed_us = enough_s * us_in_s;
}

}  // namespace

std::vector<host_findings> probe_hosts(const communicator& all, const segment& cells) {
  const communicator machine = communicator::of_machine(all.get());
  const int cores = processors_of(machine);
  const std::vector<int> first_of = first_of_machine(all);
  std::vector<int> cores_of(first_of.size());
  gather(all, &cores, cores_of.data(), MPI_INT);
  const std::vector<std::string> names = names_of_hosts(all);

  std::map<int, host_findings> hosts;  // by first rank
  for (std::size_t r = 0; r < first_of.size(); ++r) {
    host_findings& host = hosts[first_of[r]];
    host.name = names[r];
    host.cores = cores_of[r];
    ++host.ranks;
  }
  std::vector<host_findings> measured;
  if (hosts.size() == 1) return measured;
  const int second = std::next(hosts.begin())->first;
  for (auto& [target, host] : hosts) {
    measure(all, cells, target == 0 ? second : 0, target, host);
    measured.push_back(std::move(host));
  }
  return measured;
}

}  // namespace lockflight::mpi::detail
