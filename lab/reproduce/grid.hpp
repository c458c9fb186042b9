// The grid: flight and flight-rw beside all other locks, on every machine, with few ranks and many,
// few writers and many, one lock and many. Its medians say what they are worth for a share of
// writers; a cell far below the fastest other lock says where to look.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/reproduce/claims.hpp"

namespace lockflight::reproduce {

struct how;

/// A mix of operations on a machine.
struct grid_cell {
  std::string machine;
  int procs = 1;
  double writers = 1;   ///< fraction of the operations that are exclusive
  int locks = 1;        ///< of which each operation chooses
  double locality = 1;  ///< part of the operations whose lock is on the own node; of one lock none

  friend auto operator<=>(const grid_cell&, const grid_cell&) = default;
};

/// A contest of one of our locks in a cell. The lock falls short if it has less than `bound` times
/// the throughput of the fastest rival.
struct contest {
  grid_cell in;
  std::string lock;
  std::vector<std::string> rivals;
  double bound = 1;
};

/// A cell below this many times the throughput of the fastest other lock falls short, unless the
/// caller sets another bound.
constexpr double usual_bound = 0.5;

/// The cells that are chosen; empty: all of them.
struct grid_choice {
  bool quick = false;  ///< fewer numbers of ranks and locks, and few operations
  std::vector<std::string> machines{};
  std::vector<int> procs{};
  std::vector<int> locks{};
  std::optional<double> writers{};
  double below = usual_bound;  ///< the bound of every cell
};

/// How many operations a run has.
struct grid_length {
  bool quick = false;  ///< few
  int times = 1;       ///< as many as usual, and as many events before a run has no result
};

/// How many ranks the cells have, those that a machine has not left out.
[[nodiscard]] const std::vector<int>& ranks_of_grid();

[[nodiscard]] std::vector<contest> contests_of_grid(const grid_choice& which);

/// The run of a lock in a cell.
[[nodiscard]] run run_in(const grid_cell& in, const std::string& lock, grid_length length);

/// The outcome of a contest.
struct grid_outcome {
  contest of;
  std::optional<double> ops_s;
  std::string best;  ///< the fastest rival; empty: none has a result
  double best_ops_s = 0;
  std::string why;  ///< why there is nothing to compare, or what is wrong
  std::map<std::string, double> others_ops_s{};     ///< rivals with a result
  std::map<std::string, std::string> unfinished{};  ///< rivals without a result, and why

  /// 0 without a result of our own.
  [[nodiscard]] double ratio() const { return ops_s && best_ops_s > 0 ? *ops_s / best_ops_s : 0; }
  /// Below the bound; or our run broke a rule or has no result, whatever the bound.
  [[nodiscard]] bool falls_short() const {
    return !why.empty() || (!best.empty() && ratio() < of.bound);
  }
};

/// Runs each lock once in each cell.
[[nodiscard]] std::vector<grid_outcome> carry_out_grid(const std::vector<contest>& contests,
                                                       grid_length length, const how& way);

/// The median of one of our locks with one share of writers, on one machine or on all.
struct grid_median {
  std::string machine;  ///< empty: all of them
  double writers = 1;
  std::string lock;
  int cells = 0;        ///< in which a rival has a result
  int falls_short = 0;  ///< of all cells
  double median = 0;    ///< of the ratios; a cell without a result of ours counts as 0
  double least = 0;
};

/// By machine, in the order of the outcomes, then of all machines; each by share of writers and
/// lock.
[[nodiscard]] std::vector<grid_median> medians_of(const std::vector<grid_outcome>& all);

/// "1 lock", "100 locks, 90 % local".
[[nodiscard]] std::string said_of_locks(const grid_cell& in);

/// A row for each contest in "grid", one for each median in "medians".
[[nodiscard]] nlohmann::json to_json(const std::vector<grid_outcome>& all);

}  // namespace lockflight::reproduce
