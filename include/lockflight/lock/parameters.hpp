// The parameters of a lock by name, as programs, profiles and command lines give them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lockflight/lock/about.hpp"

namespace lockflight::lock {

using parameter_values = std::map<std::string, std::int64_t>;

/// `base` with those of the values that are parameters of it; other names are ignored, and the
/// ranges are not checked.
template <class Parameters>
[[nodiscard]] Parameters with_values(Parameters base, const parameter_values& values) {
  for (const auto& parameter : Parameters::all())
    if (const auto at = values.find(std::string(parameter.name)); at != values.end())
      parameter.of(base) = at->second;
  return base;
}

}  // namespace lockflight::lock
