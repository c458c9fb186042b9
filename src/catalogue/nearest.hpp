// What a misspelt name was meant to be.
#pragma once

#include <string>
#include <vector>

namespace lockflight::catalogue {

/// The closest of `known` to what was typed; empty if nothing is near.
[[nodiscard]] std::string nearest(const std::string& typed, const std::vector<std::string>& known);

/// "(nearest: T_R; accepted: T_DC, T_R)", for errors.
[[nodiscard]] std::string accepted_names(const std::string& typed,
                                         const std::vector<std::string>& known);

}  // namespace lockflight::catalogue
