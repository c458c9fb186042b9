// The requests of an agent's state machine to the code around it, in answer to an event.
//
// Everything that the event changed in the host's words stands there before any of this is carried
// out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "names/cluster/core/keys.hpp"
#include "names/cluster/core/message.hpp"

namespace lockflight::cluster {

struct submitted {
  std::uint64_t number = 0;  ///< the answer has it, too
  transaction what;
};

struct wanted_host_lock {
  std::string name;
  mode as = mode::exclusive;
  /// The lock is only wanted if it is free: the event host_lock_taken() follows at once, or never.
  /// If clients wait for the lock, host_lock_awaited() follows.
  bool if_free = false;
  /// The lock was wanted before if it was free, and it was not.
  bool again = false;
};

/// Why an agent has to end.
enum class stop : std::uint8_t {
  none,
  replaced,  ///< another agent runs on this host
  copied,    ///< an agent on a copy of this host's words has renewed in its place
};

struct effects {
  std::vector<message> messages;
  std::vector<submitted> transactions;
  /// First these are released, and then those are taken: a thread of the agent is to acquire the
  /// host lock of the name in that mode. The event host_lock_taken() follows.
  std::vector<std::string> host_locks_released;
  std::vector<wanted_host_lock> host_locks_wanted;
  /// Clients that wait for the deadline have to read it again.
  bool wakes_clients = false;
  /// The agent has to end.
  stop stops = stop::none;
  /// Etcd has lost this host's key: the host stays out until its deadline is over.
  bool has_lost_key = false;
  /// The host is no member any more, as it was asked for: the agent can end.
  bool has_left = false;
};

}  // namespace lockflight::cluster
