// lockflight agent status: what the agent of this host knows; and lockflight agent consistent,
// which changes a part of that.
#pragma once

#include <string>

#include "tool/command.hpp"
#include "tool/console.hpp"

namespace lockflight::agents {

/// 0 if this host is a member now, else 1. Throws domain_error if there is no such domain here.
int show_status(const std::string& domain, bool as_json, tool::console& out);

/// Ends the doubt about names whose hosts were lost together. 0 if nothing is in doubt any more, 3
/// if the agent does not run, or cannot do it within ten seconds. Throws domain_error as above.
int end_doubt(const std::string& domain, tool::console& out);

}  // namespace lockflight::agents
