// The search: one parameter after the other moves along a ladder of values, and a step is kept if
// the result is better. The caller's comparison says what "better" means and when the search ends.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catalogue/parameters.hpp"

namespace lockflight::tune {

/// Parameters by name.
using setting = catalogue::parameter_values;

/// A parameter, and the values that it may take, in ascending order.
struct axis {
  std::string name;
  std::vector<std::int64_t> rungs;
};

/// The ends of a range, and between them `from` doubled and halved again and again, or, where that
/// is 0, the powers of 2.
[[nodiscard]] std::vector<std::int64_t> ladder(std::int64_t least, std::int64_t most,
                                               std::int64_t from);

enum class verdict : std::uint8_t {
  better,  ///< by more than chance
  even,    ///< no difference beyond chance
  same,    ///< for certain as good as the best, or as the candidate before
  worse,   ///< by more than chance, or impossible
};

[[nodiscard]] const char* to_string(verdict is);

/// Compares a candidate with the best so far, from which it differs in one parameter. None: the
/// budget is spent, and the search ends with the best so far.
using compare = std::function<std::optional<verdict>(const setting& candidate, const setting& best,
                                                     const std::string& moved)>;

struct found {
  setting best;
  bool finished = true;  ///< false: the budget was spent before no step was left
};

/// Coordinate descent. Each parameter is moved by long steps along its ladder as long as they gain,
/// and on over values that are even; then by shorter ones, down to a rung. Where a step changes
/// nothing at all, the walk in that direction ends. All parameters are moved again, until a round
/// has gained nothing. No setting is tried twice: one that has lost against some best loses against
/// later ones, which are better.
///
/// The climb finds the best rung of a parameter that gets better towards one point from both sides.
/// Of several parameters that depend on each other it finds a setting that no single step improves.
[[nodiscard]] found climb(const std::vector<axis>& axes, const setting& start, const compare& hold);

}  // namespace lockflight::tune
