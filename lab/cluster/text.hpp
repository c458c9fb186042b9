// Tokens and messages as a trace has them.
#pragma once

#include <string>

#include "names/cluster/core/message.hpp"

namespace lockflight::cluster::sim {

[[nodiscard]] std::string text_of(const token& t);
[[nodiscard]] std::string text_of(const body& what);

}  // namespace lockflight::cluster::sim
