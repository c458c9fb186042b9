// lockflight agent status: what the agent of this host knows.
#pragma once

#include <string>

#include "tool/command.hpp"
#include "tool/console.hpp"

namespace lockflight::agents {

/// 0 if this host is a member now, else 1. Throws domain_error if there is no such domain here.
int show_status(const std::string& domain, bool as_json, tool::console& out);

}  // namespace lockflight::agents
