#include "fabric/mpi/probe_hosts.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "fabric/mpi/link.hpp"
#include "fabric/mpi/trial.hpp"

namespace lockflight::mpi::detail {
namespace {

constexpr std::uint32_t data = 8;
constexpr std::uint32_t counter = 16;
constexpr double us = 1e6;

/// How long each operation is repeated, and how long the target computes.
constexpr double enough_s = 0.15;
constexpr std::size_t enough = 100;

/// The times of `operate` one after the other, in microseconds.
template <class F>
std::vector<double> times_of(F operate) {
  std::vector<double> times;
  for (const double start = MPI_Wtime();
       times.size() < enough && (times.empty() || MPI_Wtime() - start < enough_s);) {
    const double asked = MPI_Wtime();
    operate();
    times.push_back((MPI_Wtime() - asked) * us);
  }
  return times;
}

double median(std::vector<double> of) {
  const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
  std::nth_element(of.begin(), middle, of.end());
  return *middle;
}

/// The medians of put, get, fetch-add and compare-and-swap to a rank that waits.
std::array<double, 4> latencies(link& l, rma::rank_t target) {
  rma::word got = 0;
  const auto posted = [&](remote_kind kind, std::uint32_t at, rma::word* result) {
    return median(times_of([&] {
      l.post(kind, target, at, 1, result);
      l.complete(target);
    }));
  };
  return {posted(remote_kind::put, data, nullptr), posted(remote_kind::get, data, &got),
          posted(remote_kind::fetch_add, counter, &got), median(times_of([&] {
            l.post_compare_swap(target, counter, 0, 0, &got);
            l.complete(target);
          }))};
}

/// The longest fetch-add while the target computes for `enough_s`; on the origin.
double longest_while_computing(const communicator& all, link& l, rma::rank_t origin,
                               rma::rank_t target) {
  constexpr int tag_of_start = 5;
  if (all.rank() == target) {
    check(MPI_Send(nullptr, 0, MPI_BYTE, origin, tag_of_start, all.get()), "MPI_Send");
    for (const double end = MPI_Wtime() + enough_s; MPI_Wtime() < end;) continue;
  }
  if (all.rank() != origin) return 0;
  check(MPI_Recv(nullptr, 0, MPI_BYTE, target, tag_of_start, all.get(), MPI_STATUS_IGNORE),
        "MPI_Recv");
  rma::word got = 0;
  const std::vector<double> times = times_of([&] {
    l.post(remote_kind::fetch_add, target, counter, 1, &got);
    l.complete(target);
  });
  return *std::max_element(times.begin(), times.end());
}

void measure(const communicator& all, const segment& cells, rma::rank_t origin, rma::rank_t target,
             host_findings& found) {
  link l(all, cells.exposed(), /*patient=*/spins_in_flush);
  meet(all);
  std::array<double, 4> times{};
  if (all.rank() == origin) times = latencies(l, target);
  meet(all);  // the target serves until the origin has come
  found.computing_us = longest_while_computing(all, l, origin, target);
  meet(all);
  broadcast(all, times.data(), 4, MPI_DOUBLE, origin);
  broadcast(all, &found.computing_us, 1, MPI_DOUBLE, origin);
  found.put_us = times[0];
  found.get_us = times[1];
  found.fetch_add_us = times[2];
  found.compare_swap_us = times[3];
  found.computed_us = enough_s * us;
}

}  // namespace

std::vector<host_findings> probe_hosts(const communicator& all, const segment& cells) {
  const communicator machine = communicator::of_machine(all.get());
  int first = all.rank();
  broadcast(machine, &first, 1, MPI_INT);
  const int cores = processors_of(machine);
  std::vector<int> first_of(static_cast<std::size_t>(all.size()));
  std::vector<int> cores_of(first_of.size());
  gather(all, &first, first_of.data(), MPI_INT);
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
