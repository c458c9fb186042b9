// Compares two settings by measuring both, within a budget.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/tune/search.hpp"

namespace lockflight::tune {

/// Several measurements of one setting.
struct sample {
  std::vector<double> values;

  [[nodiscard]] double median() const;
  /// From the least to the largest value; of four and more values without the two at the ends,
  /// since one disturbed measurement says nothing about the others.
  [[nodiscard]] double spread() const;
};

/// True if a is better than b: by more than the spread of either.
[[nodiscard]] verdict judge(const sample& a, const sample& b, bool less_is_better);

/// The budget of all measurements; 0: no limit.
struct budget {
  std::uint64_t runs = 0;
  double seconds = 0;
};

/// How settings are measured.
struct way {
  /// How often each setting is measured. Two settings are measured in turn, so that changes on the
  /// machine affect both.
  unsigned turns = 5;
  /// The measurement of a setting at a turn is the same each time, and is not made twice.
  bool exact = false;
  bool less_is_better = false;
  budget most{};
};

/// A candidate that was tried.
struct attempt {
  std::string moved;  ///< the parameter that differs
  std::int64_t value = 0;
  sample candidate;
  sample best;
  verdict is = verdict::even;
};

class contest {
 public:
  /// Measures a setting once. Turns count from 0; on an exact fabric each has a seed of its own.
  using measure = std::function<double(const setting& what, unsigned turn)>;
  /// Seconds since the contest began.
  using clock = std::function<double()>;

  contest(way how, measure once, clock now)
      : how_(how), once_(std::move(once)), now_(std::move(now)) {}

  /// As tune::compare. The budget reserves the runs of the last measurement.
  [[nodiscard]] std::optional<verdict> hold(const setting& candidate, const setting& best,
                                            const std::string& moved);

  /// The start and the setting found, measured once more, on an exact fabric with seeds that the
  /// search has not used: a setting that was chosen as the best of many was also lucky.
  struct last {
    sample start;
    sample found;
    bool gained = false;
  };
  [[nodiscard]] last decide(const setting& start, const setting& found);

  [[nodiscard]] const std::vector<attempt>& attempts() const { return attempts_; }
  [[nodiscard]] std::uint64_t runs() const { return runs_; }

 private:
  [[nodiscard]] double measured(const setting& what, unsigned turn);
  /// True if the candidate measures exactly as the best does, or as the candidate tried before.
  [[nodiscard]] bool is_certainly_no_other(const attempt& now) const;
  [[nodiscard]] bool affords(std::uint64_t runs) const;

  way how_;
  measure once_;
  clock now_;
  std::uint64_t runs_ = 0;
  std::vector<attempt> attempts_;
  std::map<std::pair<setting, unsigned>, double> known_;  // if measurements are exact
};

}  // namespace lockflight::tune
