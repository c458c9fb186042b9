// The command `agent` as it is described: lockflight lists it, and becomes lockflight-agent, which
// has the libraries for it.
#pragma once

#include "tool/command.hpp"

namespace lockflight::tool {

inline constexpr listing agent_listing{"agent", "keep this host in a cluster, or show how it is"};
inline constexpr std::string_view agent_program = "lockflight-agent";

/// Without what runs it.
[[nodiscard]] command agent_command();

}  // namespace lockflight::tool
