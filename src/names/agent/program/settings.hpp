// The options of an agent, from the command line and its file.
#pragma once

#include "names/agent/process/process.hpp"
#include "tool/command.hpp"

namespace lockflight::agents {

/// Throws usage_error that names the option, or the file and its key.
[[nodiscard]] cluster::agent_options settings_from(const tool::arguments& given);
/// The domain alone.
[[nodiscard]] std::string domain_from(const tool::arguments& given);

}  // namespace lockflight::agents
