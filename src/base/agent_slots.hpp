// The slots of a cluster's domain that are its agent's alone: the first ones. A thread of the agent
// waits for a lock that another host wants, and must not wait for a client's slot before it can.
#pragma once

#include <algorithm>

namespace lockflight {

/// How many of so many slots.
[[nodiscard]] constexpr int slots_of_agent(int slots) {
  constexpr int least = 2;  // for the thread that runs the agent, and for one that waits for a lock
  constexpr int enough = 16;
  return std::min(std::clamp(slots / 4, least, enough), slots - 1);
}

}  // namespace lockflight
