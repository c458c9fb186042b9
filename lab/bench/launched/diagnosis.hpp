// The doctor's diagnosis of a network, from the findings of its trial.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lab/bench/plan/launch.hpp"
#include "lockflight/fabric/findings.hpp"

namespace lockflight::bench {

/// "4 on 2 hosts, 8 cores on the first".
[[nodiscard]] std::string ranks_on(const fabric::findings& found, const std::string& host);

/// "yes", or the reason why not.
[[nodiscard]] inline std::string yes_or(bool holds, const char* otherwise) {
  return holds ? "yes" : otherwise;
}

/// The result for read-modify-writes that are not atomic.
inline constexpr const char* some_were_lost = "no: some were lost";

/// "12.34 us".
[[nodiscard]] std::string microseconds(double value);

/// The words of one network in its diagnosis.
struct words_of_network {
  std::vector<std::pair<std::string, std::string>> rows{};  ///< after its library's
  std::string launched_by;                                  ///< starts two ranks
  std::string own_node_uses;                                ///< for messages, on one host
  std::string helps_targets{};  ///< beside waiting, where a target that computes delays operations
};

[[nodiscard]] launch::diagnosis diagnosis_of(const fabric::findings& found, bool ordered_posts,
                                             const words_of_network& its);

}  // namespace lockflight::bench
