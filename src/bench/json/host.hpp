// What a comparison ran on.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace lockflight::bench {

/// Facts that explain numbers; nothing that says whose machine it is.
[[nodiscard]] nlohmann::json host_facts();

}  // namespace lockflight::bench
