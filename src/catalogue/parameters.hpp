// The parameters of locks by name: read from text, checked, and given to a lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockflight/lock/parameters.hpp"

namespace lockflight::catalogue {

using lock::parameter_values;

/// A tunable number of a lock, without the lock's type.
struct parameter_row {
  std::string_view name;
  std::int64_t default_value, min, max;
  std::string_view what;

  [[nodiscard]] constexpr bool takes(std::int64_t value) const {
    return min <= value && value <= max;
  }
  /// "1 to 1000".
  [[nodiscard]] std::string range() const;
};
using parameter_rows = std::span<const parameter_row>;

/// The rows of a lock's `parameters`.
template <class Parameters>
inline constexpr auto rows_of = [] {
  constexpr auto all = Parameters::all();
  std::array<parameter_row, all.size()> rows{};
  Parameters defaults{};
  std::transform(all.begin(), all.end(), rows.begin(), [&](const auto& p) {
    return parameter_row{p.name, p.of(defaults), p.min, p.max, p.what};
  });
  return rows;
}();

/// The row of that name; null if there is none.
[[nodiscard]] const parameter_row* find(parameter_rows rows, std::string_view name);

/// Why locks with parameters of these names do not take another: "(nearest: T_R; accepted: T_DC,
/// T_R)".
[[nodiscard]] std::string why_unknown(const std::string& name,
                                      const std::vector<std::string>& known);

/// "T_R=100" as a name and a whole number, with another `sign` between them if it is given. None if
/// the text is anything else.
[[nodiscard]] std::optional<std::pair<std::string, std::int64_t>> parse_assignment(
    std::string_view text, char sign = '=');

/// "T_R=100,T_L2=8", or nothing. Throws std::invalid_argument, which says what is accepted.
[[nodiscard]] lock::parameter_values parse_assignments(std::string_view text);

/// A value that a lock does not accept. `what()` is "'T_R=0' (accepted: 1 to 1000)", or
/// "'T_X' (nearest: T_R; accepted: T_DC, T_R)" for a name that the lock does not have.
struct bad_parameter : std::invalid_argument {
  bad_parameter(const std::string& what, const std::string& instead, bool has_name);

  std::string given;  ///< "T_R=0"
  std::string why;    ///< "(accepted: 1 to 1000)"
  bool is_known;      ///< the lock has a parameter of that name
};

/// Throws bad_parameter unless the lock has all of these parameters and accepts their values.
void check(parameter_rows rows, const parameter_values& values);

/// `base` with the values. Throws bad_parameter.
template <class Parameters>
[[nodiscard]] Parameters checked(const Parameters& base, const parameter_values& values) {
  check(rows_of<Parameters>, values);
  return lock::with_values(base, values);
}

}  // namespace lockflight::catalogue
