// The known name that a misspelt name probably means.
#pragma once

#include <string>
#include <vector>

namespace lockflight::catalogue {

/// The closest of `known` to the typed name, or those that begin with it; empty if none is near.
[[nodiscard]] std::string nearest(const std::string& typed, const std::vector<std::string>& known);

/// "(nearest: T_R; accepted: T_DC, T_R)", for errors.
[[nodiscard]] std::string accepted_names(const std::string& typed,
                                         const std::vector<std::string>& known);

}  // namespace lockflight::catalogue
