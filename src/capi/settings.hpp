// "T_R=100,T_L2=8": a lock's parameters as text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "capi/error.hpp"

namespace lockflight::capi {

struct setting {
  std::string name;
  std::int64_t value = 0;
};

/// Reads parameters as a caller writes them; empty text has none. Throws std::invalid_argument.
[[nodiscard]] std::vector<setting> parse_settings(std::string_view text);

/// Adds those values that nobody has set.
void lay_over(const std::map<std::string, std::int64_t>& values, std::vector<setting>& set);

/// The defaults of `lock`, and what is set of them. Throws refusal on a name that it does not have,
/// std::invalid_argument on a value out of range.
template <class Parameters>
[[nodiscard]] Parameters parameters_from(const std::string& lock, const std::vector<setting>& set) {
  Parameters chosen;
  for (const setting& s : set) {
    bool found = false;
    std::string accepted;
    for (const auto& parameter : Parameters::all()) {
      accepted += (accepted.empty() ? "" : ", ") + std::string(parameter.name);
      if (parameter.name != s.name) continue;
      if (s.value < parameter.min || s.value > parameter.max)
        throw std::invalid_argument("parameter " + s.name + "=" + std::to_string(s.value) + " of " +
                                    lock + " (accepted: " + std::to_string(parameter.min) + " to " +
                                    std::to_string(parameter.max) + ")");
      parameter.of(chosen) = s.value;
      found = true;
    }
    if (!found)
      throw refusal(LOCKFLIGHT_UNKNOWN, "parameter '" + s.name + "' of " + lock + " (accepted: " +
                                            (accepted.empty() ? "none" : accepted) + ")");
  }
  return chosen;
}

}  // namespace lockflight::capi
