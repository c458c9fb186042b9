// What the environment says about a rendezvous.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace lockflight::wireup {

struct rendezvous_variables {
  std::string host;
  std::string port;
  int rank = 0;
  int ranks = 1;
  std::chrono::seconds timeout{30};

  /// HOST:PORT, for messages.
  [[nodiscard]] std::string where() const { return host + ":" + port; }
};

/// Empty without LOCKFLIGHT_RENDEZVOUS. Throws std::invalid_argument that says what is accepted.
[[nodiscard]] std::optional<rendezvous_variables> variables();

}  // namespace lockflight::wireup
