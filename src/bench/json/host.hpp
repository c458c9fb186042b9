// The machine of a comparison.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace lockflight::bench {

/// Facts that explain numbers; none that identifies the machine's owner.
[[nodiscard]] nlohmann::json host_facts();

}  // namespace lockflight::bench
