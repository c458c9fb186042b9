// The parameters of flight.
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/flight/node_word.hpp"
#include "lockflight/rma/port.hpp"

namespace lockflight::lock {

struct flight_parameters {
  static constexpr std::int64_t as_cores_allow = -1;   // `barge`, `handovers`, `patience`
  static constexpr std::int64_t unless_in_table = -1;  // `one_line`
  static constexpr std::int64_t most_counted = node_word::overtaken.most();

  std::int64_t barge = as_cores_allow;
  std::int64_t handovers = as_cores_allow;
  std::int64_t local_budget = 64;
  std::int64_t remote_budget = 64;
  std::int64_t one_line = unless_in_table;
  std::int64_t patience = as_cores_allow;

  /// The head of a queue may be asleep where ranks share cores, and a handoff to it costs two
  /// process switches. There the head may be overtaken as often as can be counted, and its patience
  /// is the bound.
  [[nodiscard]] std::int64_t barge_on(const auto& port) const {
    if (barge != as_cores_allow) return barge;
    return rma::shares_cores(port) ? most_counted : 64;
  }
  /// Of the parameters alone: the most that `barge_on` can be.
  [[nodiscard]] constexpr std::int64_t most_barges() const {
    return barge != as_cores_allow ? barge : most_counted;
  }
  /// A time slice of a scheduler is some milliseconds, so this adds little to the longest wait.
  [[nodiscard]] std::int64_t patience_on(const auto& port) const {
    if (patience != as_cores_allow) return patience;
    return rma::shares_cores(port) ? 300'000 : 0;
  }
  /// 0 where ranks share cores, since the successor may not be running. More in tables of locks,
  /// where few ranks contend for each lock and a rank seldom acquires the same lock twice in a row.
  [[nodiscard]] std::int64_t handovers_on(const auto& port) const {
    if (handovers != as_cores_allow) return handovers;
    if (rma::shares_cores(port)) return 0;
    return one_line == 1 ? 64 : 16;
  }

  /// For a lock that is one of many: few contend for it, and its lines are not in caches.
  [[nodiscard]] constexpr flight_parameters in_table(table_size) const {
    flight_parameters made = *this;
    if (one_line == unless_in_table) made.one_line = 1;
    return made;
  }

  /// The table of these parameters, for this struct and for a struct that has them as `writers`.
  template <class P, auto Of>
  [[nodiscard]] static constexpr std::array<parameter<P>, 6> all_of() {
    return {{
        {"barge", [](P& p) -> std::int64_t& { return Of(p).barge; }, as_cores_allow, most_counted,
         "arrivals that may barge past the head of a node's queue; -1: 64, and 16383 where ranks "
         "share cores"},
        {"handovers", [](P& p) -> std::int64_t& { return Of(p).handovers; }, as_cores_allow,
         most_counted,
         "times in a row that a node's holder hands over to its successor, until others may barge; "
         "0: they always may; -1: 16, in tables of locks 64, and 0 where ranks share cores"},
        {"local_budget", [](P& p) -> std::int64_t& { return Of(p).local_budget; }, 1, 60'000,
         "acquires in a row on a node while another one waits"},
        {"remote_budget", [](P& p) -> std::int64_t& { return Of(p).remote_budget; }, 1, 60'000,
         "nodes in a row before the home's node is let in"},
        {"one_line", [](P& p) -> std::int64_t& { return Of(p).one_line; }, unless_in_table, 1,
         "1: all words of a node lie on one cache line; 0: words that others write lie on another; "
         "-1: 1 in tables of locks"},
        {"patience", [](P& p) -> std::int64_t& { return Of(p).patience; }, as_cores_allow,
         1'000'000'000,
         "nanoseconds that the head of a node's queue competes with arrivals, after which the word "
         "is reserved for it and it sleeps; 0: their number alone counts; -1: 0, and 300000 where "
         "ranks share cores"},
    }};
  }
  [[nodiscard]] static constexpr auto all() {
    return all_of<flight_parameters,
                  [](flight_parameters& p) -> flight_parameters& { return p; }>();
  }
};

}  // namespace lockflight::lock
