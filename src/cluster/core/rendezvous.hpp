// Which member is the home of a name (design, section 12, "The home"): the one with the greatest
// hash of name and member. A member that comes or goes moves only the names of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/fnv.hpp"
#include "cluster/core/terms.hpp"

namespace lockflight::cluster {

[[nodiscard]] constexpr std::uint64_t scattered(std::uint64_t x) {  // the finalizer of splitmix64
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The members that can be homes: those that stay. If none does, the first one is to leave last.
[[nodiscard]] inline std::vector<identity> possible_homes(const std::vector<member>& members) {
  std::vector<identity> found;
  for (const member& each : members)
    if (!each.retires) found.push_back(each.who);
  if (found.empty() && !members.empty()) found.push_back(members.front().who);
  return found;
}

/// There must be one.
[[nodiscard]] inline identity home_of(std::string_view name, const std::vector<identity>& homes) {
  const std::uint64_t named = fnv1a(name);
  const identity* best = nullptr;
  std::uint64_t most = 0;
  for (const identity& each : homes) {
    const std::uint64_t weight = scattered(named ^ scattered(each.id));
    if (best != nullptr && weight <= most) continue;
    best = &each;
    most = weight;
  }
  return *best;
}

}  // namespace lockflight::cluster
