// The times of operations: the common part of measurements and trials.
#pragma once

#include <algorithm>
#include <vector>

#include "fabric/mpi/link.hpp"

namespace lockflight::mpi::detail {

constexpr double us_in_s = 1e6;

/// How often an operation is repeated, and for how long at most.
struct repetition {
  std::size_t most = 0;
  double seconds = 0;
};

/// The times of `operate` one after the other, in microseconds; one at least.
template <class F>
[[nodiscard]] std::vector<double> times_of(const repetition& how, F operate) {
  std::vector<double> times;
  for (const double start = PMPI_Wtime();
       times.size() < how.most && (times.empty() || PMPI_Wtime() - start < how.seconds);) {
    const double asked = PMPI_Wtime();
    operate();
    times.push_back((PMPI_Wtime() - asked) * us_in_s);
  }
  return times;
}

[[nodiscard]] inline std::vector<double> times_of_fetch_add(const repetition& how, link& l,
                                                            rma::rank_t target,
                                                            std::uint32_t index) {
  rma::word before = 0;
  return times_of(how, [&] {
    l.post(remote_kind::fetch_add, target, index, 1, &before);
    l.complete(target);
  });
}

/// The longest of these times; 0 if there is none.
[[nodiscard]] inline double longest(const std::vector<double>& of) {
  return of.empty() ? 0 : *std::max_element(of.begin(), of.end());
}

/// The longest fetch-add of the origin to a target that computes for so many seconds and calls
/// nothing; in microseconds, on the origin. For these two ranks.
[[nodiscard]] inline double longest_while_computing(const communicator& all, link& l,
                                                    rma::rank_t origin, rma::rank_t target,
                                                    std::uint32_t index, double seconds,
                                                    const repetition& how) {
  constexpr int tag_of_start = 5;  // the origin begins after the target has sent that it starts
  if (all.rank() == target) {
    check(PMPI_Send(nullptr, 0, MPI_BYTE, origin, tag_of_start, all.get()), "MPI_Send");
    for (const double end = PMPI_Wtime() + seconds; PMPI_Wtime() < end;) continue;
  }
  if (all.rank() != origin) return 0;
  check(PMPI_Recv(nullptr, 0, MPI_BYTE, target, tag_of_start, all.get(), MPI_STATUS_IGNORE),
        "MPI_Recv");
  return longest(times_of_fetch_add(how, l, target, index));
}

}  // namespace lockflight::mpi::detail
