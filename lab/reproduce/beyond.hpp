// Beyond the papers: every lock on every machine, over the number of ranks. Data, and no claims.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/reproduce/claims.hpp"

namespace lockflight::reproduce {

/// A lock on a machine with more and more ranks.
struct curve {
  std::string machine;
  std::string workload;
  double writers = 1;
  std::string lock;
  std::vector<run> runs;  ///< each with more ranks than the one before
};

/// The results of a curve.
struct measured_curve {
  curve of;
  std::vector<nlohmann::json> points;  ///< results of its first runs, as in the benchmark's JSON
  std::string ends;                    ///< why the run after them has none; empty: there is none
  /// The number of ranks of the first run without a result.
  [[nodiscard]] int ends_at() const { return of.runs.at(points.size()).at("procs").get<int>(); }
};

/// A run of a curve that takes more events of the simulator than this is ended, and so is the
/// curve.
constexpr std::uint64_t most_events_of_a_point = 5'000'000;
/// … or that would take more of this machine's memory.
constexpr std::uint64_t most_bytes_of_a_point = std::uint64_t{4} << 30;

/// "5 million events of the simulator or 4 GiB".
[[nodiscard]] std::string most_of_a_point();

/// The shares of writers (the papers' F_W) are 1 and this.
constexpr double few_writers = 0.002;

/// The curves: all locks that the simulator can run, except deferring ones, on the machines that
/// are part of the program; and one of a single point, the whole K computer. `quick`: few ranks.
[[nodiscard]] std::vector<curve> curves_beyond(bool quick);

/// True if the curve is that of the whole K computer.
[[nodiscard]] bool is_k_computer(const curve& c);

/// "all write", "0.2 % write".
[[nodiscard]] std::string said_of_writers(double writers);

/// The point with that many ranks; null if there is none.
[[nodiscard]] const nlohmann::json* point_at(const measured_curve& c, int procs);

/// The lock that is fastest on a machine, with its number of ranks.
struct fastest {
  std::string machine;
  double writers = 1;
  struct stretch {
    std::string lock;
    int from = 0;  ///< ranks
    int to = 0;
  };
  std::vector<stretch> locks;
  int most = 0;              ///< ranks that were run
  double ops_s_at_most = 0;  ///< of the fastest
  double times_slowest = 0;  ///< … and its throughput divided by that of the slowest there

  [[nodiscard]] std::string said() const;  ///< "spin 1 to 4, d-mcs 16"
};
/// For each machine and share of writers, in the order of the curves.
[[nodiscard]] std::vector<fastest> fastest_of(const std::vector<measured_curve>& curves);

/// The locks whose curves end before the others, and the first number of ranks that they lack:
/// "spin 4096", with the reason "spin 4096 (more than 20000000 events)".
[[nodiscard]] std::vector<std::string> ends_of(const std::vector<measured_curve>& curves,
                                               const std::string& machine, double writers,
                                               bool with_reason);

/// The result of the whole K computer, in a sentence; empty if it was not asked for.
[[nodiscard]] std::string said_of_k_computer(const std::vector<measured_curve>& curves);

/// A row for each point, and one for the first point that a curve lacks.
[[nodiscard]] nlohmann::json rows_of(const std::vector<measured_curve>& curves);

}  // namespace lockflight::reproduce
