#include "lab/tune/contest.hpp"

#include <algorithm>
#include <cmath>

#include "base/median.hpp"
#include "lockflight/rma/assert.hpp"

namespace lockflight::tune {

double sample::median() const {
  rma::ensure(!values.empty(), "a sample has a value");
  return median_of(values);
}

double sample::spread() const {
  constexpr std::size_t enough = 4;
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t off = sorted.size() >= enough ? 1 : 0;
  return sorted[sorted.size() - 1 - off] - sorted[off];
}

verdict judge(const sample& a, const sample& b, bool less_is_better) {
  const double gain = (less_is_better ? -1 : 1) * (a.median() - b.median());
  const double chance = std::max(a.spread(), b.spread());
  if (gain > chance) return verdict::better;
  return gain < -chance ? verdict::worse : verdict::even;
}

double contest::measured(const setting& what, unsigned turn) {
  if (how_.exact)
    if (const auto at = known_.find({what, turn}); at != known_.end()) return at->second;
  const double value = once_(what, turn);
  ++runs_;
  if (how_.exact) known_.emplace(std::pair(what, turn), value);
  return value;
}

bool contest::affords(std::uint64_t runs) const {
  const std::uint64_t needed = runs + 2 * std::uint64_t{how_.turns};  // the last measurement too
  if (how_.most.runs != 0 && runs_ + needed > how_.most.runs) return false;
  if (how_.most.seconds == 0 || runs_ == 0) return true;
  const double each = now_() / static_cast<double>(runs_);
  return now_() + each * static_cast<double>(needed) <= how_.most.seconds;
}

std::optional<verdict> contest::hold(const setting& candidate, const setting& best,
                                     const std::string& moved) {
  const bool best_is_known = how_.exact && known_.contains({best, how_.turns - 1});
  if (!affords((best_is_known ? 1 : 2) * std::uint64_t{how_.turns})) return std::nullopt;
  attempt now{.moved = moved,
              .value = candidate.at(moved),
              .candidate = {},
              .best = {},
              .is = verdict::even};
  // If runs are exact, the best has all of its values from the beginning.
  if (how_.exact)
    for (unsigned turn = 0; turn < how_.turns; ++turn)
      now.best.values.push_back(measured(best, turn));
  const auto loses_all = [&] {
    const auto [least_of_best, most_of_best] =
        std::minmax_element(now.best.values.begin(), now.best.values.end());
    const auto [least, most] =
        std::minmax_element(now.candidate.values.begin(), now.candidate.values.end());
    return how_.less_is_better ? *least > *most_of_best : *most < *least_of_best;
  };
  // A candidate that is clearly behind in more than half of the turns cannot win any more.
  for (unsigned turn = 0; turn < how_.turns; ++turn) {
    now.candidate.values.push_back(measured(candidate, turn));
    if (!how_.exact) now.best.values.push_back(measured(best, turn));
    if (turn + 1 == how_.turns / 2 + 1 && loses_all()) break;
  }
  const bool given_up = now.candidate.values.size() < how_.turns;
  now.is = given_up ? verdict::worse : judge(now.candidate, now.best, how_.less_is_better);
  if (now.is == verdict::even && is_certainly_no_other(now)) now.is = verdict::same;
  attempts_.push_back(now);
  return now.is;
}

bool contest::is_certainly_no_other(const attempt& now) const {
  if (!how_.exact) return false;
  const bool is_before = !attempts_.empty() && attempts_.back().moved == now.moved &&
                         attempts_.back().candidate.values == now.candidate.values;
  return is_before || now.candidate.values == now.best.values;
}

contest::last contest::decide(const setting& start, const setting& found) {
  const unsigned first = how_.exact ? how_.turns : 0;
  last made;
  for (unsigned turn = first; turn < first + how_.turns; ++turn) {
    made.start.values.push_back(measured(start, turn));
    made.found.values.push_back(start == found ? made.start.values.back() : measured(found, turn));
  }
  made.gained = judge(made.found, made.start, how_.less_is_better) == verdict::better;
  return made;
}

}  // namespace lockflight::tune
