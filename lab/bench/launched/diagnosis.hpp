// The doctor's diagnosis of a network, from the findings of its trial.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lab/bench/plan/launch.hpp"
#include "lockflight/fabric/findings.hpp"

namespace lockflight::bench {

/// "4 on 2 hosts, 8 cores on the first"; the noun is "host" or "machine".
[[nodiscard]] std::string ranks_on(const fabric::findings& found, const std::string& noun);

/// "yes", or the reason why not.
[[nodiscard]] inline std::string yes_or(bool holds, const char* otherwise) {
  return holds ? "yes" : otherwise;
}

/// The result for read-modify-writes that are not atomic.
inline constexpr const char* some_were_lost = "no: some were lost";

/// "12.34 us".
[[nodiscard]] std::string microseconds(double value);

/// The texts of one network in its diagnosis.
struct texts_of_network {
  std::vector<std::pair<std::string, std::string>> rows{};  ///< come after the library's row
  std::string launched_by;      ///< names the launcher, or the variables, that start two ranks
  std::string own_node_uses;    ///< names the network that carries messages among ranks of one host
  std::string helps_targets{};  ///< says what else than waiting helps a target that computes
};

[[nodiscard]] launch::diagnosis diagnosis_of(const fabric::findings& found, bool ordered_posts,
                                             const texts_of_network& its);

}  // namespace lockflight::bench
