// Which member is the home of a name (design, section 12, "The home"): the one with the greatest
// hash of name and member. A member that comes or goes moves only the names of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cluster/core/terms.hpp"

namespace lockflight::cluster {

[[nodiscard]] constexpr std::uint64_t scattered(std::uint64_t x) {  // the finalizer of splitmix64
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

[[nodiscard]] constexpr std::uint64_t hash_of(std::string_view name) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

[[nodiscard]] constexpr const identity& identity_of(const identity& who) { return who; }
[[nodiscard]] constexpr const identity& identity_of(const member& who) { return who.who; }

/// There must be a member.
template <class Member>
[[nodiscard]] identity home_of(std::string_view name, const std::vector<Member>& members) {
  const std::uint64_t named = hash_of(name);
  const Member* best = nullptr;
  std::uint64_t most = 0;
  for (const Member& each : members) {
    const std::uint64_t weight = scattered(named ^ scattered(identity_of(each).id));
    if (best != nullptr && weight <= most) continue;
    best = &each;
    most = weight;
  }
  return identity_of(*best);
}

}  // namespace lockflight::cluster
