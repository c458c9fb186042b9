// The state machines that a simulation runs: those of src/cluster/core, or broken copies of them.
#pragma once

#include <memory>
#include <string>

#include "cluster/core/acquire_events.hpp"
#include "cluster/core/agent_events.hpp"
#include "cluster/core/words.hpp"

namespace lockflight::cluster::sim {

struct core_under_test {
  std::unique_ptr<agent_events> (*make_agent)(member_id self, const timing& times,
                                              host_words& words);
  std::unique_ptr<acquire_events> (*make_acquire)(const std::string& name, mode wanted,
                                                  host_words& words);
};

/// The core as it is.
[[nodiscard]] core_under_test intact_core();

}  // namespace lockflight::cluster::sim
