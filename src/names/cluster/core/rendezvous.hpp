// The member that is the home of a name (docs/cluster.md, "The home"): the one with the greatest
// hash of name and member. A member that comes or goes moves only the names of its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fnv.hpp"
#include "names/cluster/core/terms.hpp"

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

/// The first one of another id than `but_for`, or null.
[[nodiscard]] inline const identity* first_for(std::string_view name,
                                               const std::vector<identity>& homes,
                                               member_id but_for) {
  const std::uint64_t named = fnv1a(name);
  const identity* best = nullptr;
  std::uint64_t most = 0;
  for (const identity& each : homes) {
    if (each.id == but_for) continue;
    const std::uint64_t weight = scattered(named ^ scattered(each.id));
    if (best != nullptr && weight <= most) continue;
    best = &each;
    most = weight;
  }
  return best;
}

/// The list must have a member.
[[nodiscard]] inline identity home_of(std::string_view name, const std::vector<identity>& homes) {
  return *first_for(name, homes, 0);  // no member has the id 0
}

/// The witness of the home (home.hpp): the member that comes after it. There is none if the home is
/// alone.
[[nodiscard]] inline std::optional<member_id> witness_of(std::string_view name,
                                                         const std::vector<identity>& homes) {
  const identity* const found = first_for(name, homes, home_of(name, homes).id);
  return found == nullptr ? std::nullopt : std::optional(found->id);
}

}  // namespace lockflight::cluster
