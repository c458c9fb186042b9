// The meaning of a caller's configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockflight/lockflight.h"
#include "lockflight/rma/topology.hpp"

namespace lockflight::capi {

/// The caller's configuration, or the defaults if there is none.
[[nodiscard]] inline lockflight_config or_defaults(const lockflight_config* given) {
  return given != nullptr ? *given : lockflight_config{};
}

[[nodiscard]] inline std::string waiting_of(const lockflight_config& what) {
  return what.waiting != nullptr ? what.waiting : "auto";
}

[[nodiscard]] inline std::uint32_t words_of(const lockflight_config& what) {
  return what.words_per_rank != 0 ? what.words_per_rank : std::uint32_t{1} << 17;
}

/// The machine that `levels` describes; none if there are no levels. Throws std::invalid_argument
/// that names the member.
[[nodiscard]] std::optional<rma::topology> levels_of(const lockflight_config& what);

// ---- for ranks that another launcher has started ----

/// Throws std::invalid_argument on members that are lockflight_run's.
void refuse_members_of_runs(const lockflight_config& what);

/// The machine that `levels` describes, or else the one that was found. Throws
/// std::invalid_argument unless it has as many ranks; `of` names what they are the ranks of.
[[nodiscard]] rma::topology levels_or(const lockflight_config& what, rma::topology found,
                                      const char* of);

}  // namespace lockflight::capi
