// What an agent's state machine asks of the code around it, in answer to an event.
//
// Everything that the event changed in the host's words stands there before any of this is carried
// out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/core/keys.hpp"
#include "cluster/core/message.hpp"

namespace lockflight::cluster {

struct submitted {
  std::uint64_t number = 0;  ///< the answer has it, too
  transaction what;
};

struct effects {
  std::vector<message> messages;
  std::vector<submitted> transactions;
  /// Names whose host lock a thread of the agent is to acquire. The event host_lock_taken()
  /// follows.
  std::vector<std::string> host_locks_wanted;
  std::vector<std::string> host_locks_released;
  /// Clients that wait for the deadline have to look again.
  bool wakes_clients = false;
  /// Another agent runs on this host: this one has to end.
  bool stops = false;
  /// The host is no member any more, as it was asked for: the agent can end.
  bool has_left = false;
};

}  // namespace lockflight::cluster
