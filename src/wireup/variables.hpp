// The rendezvous that the environment's variables describe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockflight::wireup {

/// The place at which the ranks of a launch meet, and the number of this rank.
struct rendezvous {
  std::vector<std::string> hosts;  ///< addresses of rank 0; the others try one after the other
  std::string port;
  int rank = 0;
  int ranks = 1;
  std::chrono::seconds timeout{30};
  /// Of all ranks alike; another launch, at the same port of another host, has another one.
  std::uint64_t token = 0;

  /// HOST:PORT, for messages.
  [[nodiscard]] std::string where() const;
};

/// Empty without LOCKFLIGHT_RENDEZVOUS. Throws std::invalid_argument that says what is accepted.
[[nodiscard]] std::optional<rendezvous> variables();

/// LOCKFLIGHT_RENDEZVOUS_TIMEOUT, or the default. Throws std::invalid_argument.
[[nodiscard]] std::chrono::seconds timeout();

/// Throws std::invalid_argument if a launcher says that this is one of several ranks.
void require_no_launcher();

}  // namespace lockflight::wireup
