// Between the names of --set and the parameter structs of the locks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/bench.hpp"

namespace lockflight::bench {

/// The lock's parameters: its defaults, and what is set of them. Names that it does not have are
/// some other lock's; ranges were checked before (request.cpp).
template <class Parameters>
[[nodiscard]] Parameters parameters_from(const std::map<std::string, std::int64_t>& set) {
  Parameters chosen;
  for (const auto& parameter : Parameters::all())
    if (const auto at = set.find(std::string(parameter.name)); at != set.end())
      parameter.of(chosen) = at->second;
  return chosen;
}

template <class Parameters>
[[nodiscard]] std::vector<parameter_row> rows_of() {
  std::vector<parameter_row> rows;
  Parameters defaults;
  for (const auto& parameter : Parameters::all())
    rows.push_back({std::string(parameter.name), parameter.of(defaults), parameter.min,
                    parameter.max, std::string(parameter.what)});
  return rows;
}

}  // namespace lockflight::bench
