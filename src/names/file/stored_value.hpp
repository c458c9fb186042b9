// A value that a holder has published under a name, as the domain file and etcd have it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lockflight/domain.hpp"

namespace lockflight::detail {

struct stored_value {
  std::string bytes;
  std::uint64_t token = 0;  ///< of the hold in which it was published; 0: there is none
  lasts until = lasts::with_name;
  /// In a cluster's domain: the agent has not stored yet what etcd has.
  bool is_unknown = false;
  bool operator==(const stored_value&) const = default;
};

[[nodiscard]] constexpr std::string_view text_of(lasts until) {
  return until == lasts::with_hold ? "with_hold" : "with_name";
}
[[nodiscard]] constexpr std::optional<lasts> lasts_from(std::string_view text) {
  for (const lasts each : {lasts::with_hold, lasts::with_name})
    if (text == text_of(each)) return each;
  return std::nullopt;
}

}  // namespace lockflight::detail
