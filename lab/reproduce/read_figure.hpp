// Figures as claim files write them.
#pragma once

#include <string>

#include "lab/reproduce/claims.hpp"
#include "lab/reproduce/read_run.hpp"

namespace lockflight::reproduce {

/// Reads a [[figure]]. Throws bad_claims.
[[nodiscard]] figure read_figure(const toml::table& table, const std::string& path,
                                 const paper& of);

}  // namespace lockflight::reproduce
