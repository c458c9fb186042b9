// The parameters of flight.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/flight/node_word.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::lock {

struct flight_parameters {
  static constexpr std::int64_t as_cores_allow = -1;   // `handovers`
  static constexpr std::int64_t unless_in_table = -1;  // `one_line`
  static constexpr std::int64_t most_counted = node_word::most_passed_by;

  std::int64_t barge = 64;
  std::int64_t handovers = as_cores_allow;
  std::int64_t local_budget = 64;
  std::int64_t remote_budget = 64;
  std::int64_t one_line = unless_in_table;

  /// None where ranks share cores, since who is told that the lock is its own may not run. More
  /// where few contend for each of many locks: there hardly anybody comes again at once.
  [[nodiscard]] std::int64_t handovers_on(const auto& port) const {
    if (handovers != as_cores_allow) return handovers;
    if (rma::shares_cores(port)) return 0;
    return one_line == 1 ? 64 : 16;
  }

  /// For a lock that is one of many, so that few contend for it, and its lines are not in caches.
  [[nodiscard]] constexpr flight_parameters in_table(table_size) const {
    flight_parameters made = *this;
    if (one_line == unless_in_table) made.one_line = 1;
    return made;
  }

  [[nodiscard]] static constexpr auto all() {
    return std::array{
        parameter<flight_parameters>{"barge", [](auto& p) -> std::int64_t& { return p.barge; }, 0,
                                     most_counted,
                                     "acquires that come past the head of a node's queue"},
        parameter<flight_parameters>{
            "handovers", [](auto& p) -> std::int64_t& { return p.handovers; }, as_cores_allow,
            most_counted,
            "times in a row that who waits in a node's queue is told that the lock is its own, "
            "until others may come past; 0: they always may; -1: 16, in tables of locks 64, and 0 "
            "where "
            "ranks share cores"},
        parameter<flight_parameters>{
            "local_budget", [](auto& p) -> std::int64_t& { return p.local_budget; }, 1, 60'000,
            "acquires in a row on a node while another one waits; inside "
            "it turns in a row of an element's queue"},
        parameter<flight_parameters>{"remote_budget",
                                     [](auto& p) -> std::int64_t& { return p.remote_budget; }, 1,
                                     60'000, "nodes in a row before the home's node is let in"},
        parameter<flight_parameters>{
            "one_line", [](auto& p) -> std::int64_t& { return p.one_line; }, unless_in_table, 1,
            "1: all words at the home lie on one cache line; 0: what other nodes write lies on "
            "another; -1: 1 in tables of locks"},
    };
  }
};

}  // namespace lockflight::lock
