// "T_R=100,T_L2=8": a lock's parameters as a caller of the C interface gives them.
#pragma once

#include <string>

#include "bindings/c/error.hpp"
#include "catalogue/parameters.hpp"

namespace lockflight::capi {

/// The defaults of `lock`, changed by the settings. Throws refusal on a name that it does not have,
/// std::invalid_argument on a value out of range.
template <class Parameters>
[[nodiscard]] Parameters parameters_from(const std::string& lock,
                                         const lock::parameter_values& set) {
  try {
    return catalogue::checked(Parameters{}, set);
  } catch (const catalogue::bad_parameter& e) {
    const std::string why = "parameter '" + e.given + "' of " + lock + " " + e.why;
    if (!e.is_known) throw refusal(LOCKFLIGHT_UNKNOWN, why);
    throw std::invalid_argument(why);
  }
}

}  // namespace lockflight::capi
