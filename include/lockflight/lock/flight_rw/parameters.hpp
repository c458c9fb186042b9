// The parameters of flight-rw.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/flight/parameters.hpp"

namespace lockflight::lock {

struct flight_rw_parameters {
  static constexpr std::int64_t as_cores_allow = -1;  // `t_w`, `overtaking`

  std::int64_t ranks_per_cell = 0;
  std::int64_t t_w = as_cores_allow;
  std::int64_t overtaking = as_cores_allow;
  flight_parameters writers{};
  // Not for users: what `ranks_per_cell` 0 means where nodes are several; and whether all words lie
  // at the lock's home on a single node, too.
  std::int64_t few_ranks = 2;
  bool rows_at_home = false;

  /// The next writer may not be running where ranks share cores, and while the gates stay closed
  /// for it, no reader can go on. Not so on several nodes, where to open the gates costs the
  /// network.
  [[nodiscard]] std::int64_t t_w_on(const auto& port) const {
    constexpr std::int64_t while_readers_wait = 256;
    if (t_w != as_cores_allow) return t_w;
    return rma::shares_cores(port) && port.machine().nodes() == 1 ? 1 : while_readers_wait;
  }
  /// Not on several nodes with a core for each rank: writers that overtake a reader there cost the
  /// network.
  [[nodiscard]] std::int64_t overtaking_on(const auto& port) const {
    constexpr std::int64_t while_others_run = 16;
    if (overtaking != as_cores_allow) return overtaking;
    return rma::shares_cores(port) || port.machine().nodes() == 1 ? while_others_run : 0;
  }

  /// For a lock that is one of many: fewer ranks read each of them, and a reader counter more is a
  /// line that a writer may have to fetch, and memory for each lock.
  [[nodiscard]] flight_rw_parameters one_of(table_size of) const {
    flight_rw_parameters made = *this;
    made.few_ranks = of.locks * 2 <= of.ranks ? 4 : 16;
    return made;
  }
  [[nodiscard]] flight_rw_parameters in_table(table_size of) const {
    flight_rw_parameters made = one_of(of);
    made.writers = writers.in_table(of);
    return made;
  }

  /// For the locks of an MPI window, one on each rank. Where ranks are many each is to be one line
  /// on each node: a node's first rank has the lines of all.
  [[nodiscard]] flight_rw_parameters one_of_window(int ranks, int nodes) const {
    constexpr int many = 512;
    flight_rw_parameters made = one_of({ranks, ranks});
    if (nodes == 1 || ranks < many) return made;
    made.writers = writers.in_table({ranks, ranks});
    if (made.writers.one_line == 1) made.few_ranks = ranks;  // a counter, which lies on that line
    return made;
  }

  [[nodiscard]] static constexpr auto all() {
    using p = flight_rw_parameters;
    constexpr auto writers =
        flight_parameters::all_of<p, [](p& s) -> auto& { return s.writers; }>();
    return std::array{
        parameter<p>{
            "ranks_per_cell", [](p& s) -> std::int64_t& { return s.ranks_per_cell; }, 0, 4'095,
            "readers of a node that share a counter; 0: each has its own on one node, else 2 share "
            "one, or so many that a node has 32; in tables of locks 4, or 16 if there are not two "
            "ranks for each lock"},
        parameter<p>{
            "T_W", [](p& s) -> std::int64_t& { return s.t_w; }, as_cores_allow, 4'000,
            "writers in a row while readers wait, 0 as 1; -1: 256, and 1 on a single node whose "
            "ranks share cores"},
        parameter<p>{
            "overtaking", [](p& s) -> std::int64_t& { return s.overtaking; }, as_cores_allow, 1'000,
            "times that a waiting reader finds the gates closed again before writers wait for it; "
            "-1: 16 on a single node and where ranks share cores, else none"},
        writers[0],
        writers[1],
        writers[2],
        writers[3],
        writers[4],
        writers[5]};
  }
};

}  // namespace lockflight::lock
