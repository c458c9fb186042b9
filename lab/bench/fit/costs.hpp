// The costs that a fit measures on one rank.
#pragma once

#include "lab/bench/workload/anywhere.hpp"

namespace lockflight::bench {

/// The costs in nanoseconds; 0 if the rank has not measured a cost. A "far" cost is that of
/// operations on rank 0 from the first rank of another node, while all other ranks wait. On one
/// node there are no far costs, and rank 0 measures the rest.
struct costs {
  double hit = 0;            ///< a load of a cell that the core has
  double rmw = 0;            ///< an atomic on one
  double shared_rmw = 0;     ///< an atomic, while a rank of the same node does them on that cell
  double near_handoff = 0;   ///< a put, until a rank of the same node that awaits it has seen it
  double far_get = 0;        ///< a get, posted and flushed
  double far_spread = 0;     ///< half of what the middle half of these differ by, over their median
  double far_fetch_add = 0;  ///< a fetch-add, posted and flushed
  double post = 0;           ///< to post one of several
  double far_several = 0;    ///< `several` fetch-adds, posted and flushed together
  double own_fetch_add = 0;  ///< a fetch-add on a nic cell of the own rank
  double own_get = 0;        ///< a get of a plain cell of the own rank
  double far_handoff = 0;    ///< a put, until the rank that awaits it has seen it
  double send = 0;           ///< to send a message
  double message = 0;        ///< a message, until it has been received
  double same_cell_rate = 0;  ///< of this rank's fetch-adds on one cell that all far ranks change
  double own_cell_rate = 0;   ///< the same, each rank on a cell of its own

  static constexpr int several = 8;
};

/// Measures the costs, in place of a lock's workload; this process's rank finds them in
/// found_costs().
extern const anywhere measurement;
[[nodiscard]] const costs& found_costs();

/// Measures the costs on shared memory, with the ranks of one node as threads. Returns rank 0's.
[[nodiscard]] costs costs_on_shm(const run_plan& plan);

/// The rank that measures: the first that is not on rank 0's node, or rank 0 if there is none.
[[nodiscard]] rma::rank_t measuring_rank(const rma::topology& machine);

}  // namespace lockflight::bench
