// The terms of a cluster that all other files use: members, epochs, tokens, modes, times.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "lockflight/mode.hpp"

namespace lockflight::cluster {

/// A member is a domain file. Its number is random, and is made with the file.
using member_id = std::uint64_t;
/// 16 hexadecimal digits: a member in messages, JSON and the keys of etcd.
[[nodiscard]] inline std::string text_of(member_id id) {
  std::string text(16, '0');
  for (auto at = text.rbegin(); id != 0; id >>= 4) *at++ = "0123456789abcdef"[id & 0xf];
  return text;
}
using epoch_number = std::uint32_t;
/// The greatest, for which tokens have room. No epoch follows it.
constexpr epoch_number last_epoch = (1U << 20) - 1;
/// With fewer left, an agent warns.
constexpr epoch_number few_epochs = 1U << 16;
/// A host that was taken off the members comes back in another incarnation.
using incarnation_number = std::uint32_t;
/// Each start of an agent has another number.
using agent_number = std::uint32_t;
/// Drawn at random for each renewal, and written with it. An agent that finds another number than
/// its own in its host's beat knows that an agent on a copy of the host's words renews.
using beat_number = std::uint64_t;
/// Microseconds of the host's own clock, which goes on while the host sleeps (CLOCK_BOOTTIME).
using instant = std::int64_t;
/// A revision of etcd.
using revision = std::int64_t;

/// The mode in which a host owns a name, and in which a client wants it.
using lockflight::mode;

/// The greatest counter of a token.
constexpr std::uint64_t last_counter = (std::uint64_t{1} << 42) - 1;

/// The fencing token. It grows with each exclusive acquire.
struct token {
  epoch_number epoch = 0;
  std::uint64_t counter = 0;
  auto operator<=>(const token&) const = default;
};

/// A host in one of its incarnations.
struct identity {
  member_id id = 0;
  incarnation_number incarnation = 0;
  auto operator<=>(const identity&) const = default;
};

struct member {
  identity who;
  agent_number agent = 0;
  /// The member is about to leave: it is no home any more, and gives back the names that it owns.
  bool retires = false;
  auto operator<=>(const member&) const = default;
};

/// The members of an epoch that is over that could be homes, as long as it matters what those knew.
struct past_epoch {
  epoch_number number = 0;
  std::vector<identity> members;
  /// A later epoch is settled: the records of this epoch's homes have reached the homes of that
  /// one, but for those of the homes in `gone`.
  bool passed_on = false;
  std::vector<identity> gone;
  /// There were members that were about to leave as well, and could not be homes.
  bool has_leavers = false;
  bool operator==(const past_epoch&) const = default;

  /// True if a death in a name whose home is among the `gone` may be unknown to all living members:
  /// the name's owner, or the witness of a home that owned it itself, may be gone too. So the first
  /// holder of each such name is told of a death, until an operator ends the doubt.
  [[nodiscard]] bool leaves_doubt() const {
    return !gone.empty() && (gone.size() > 1 || members.size() == 1 || has_leavers);
  }
};

/// A number that the agent which made an epoch has drawn for it. An etcd that was restored from a
/// copy gets other seals for the epochs that it makes again.
struct epoch_seal {
  epoch_number epoch = 0;
  std::uint32_t drawn = 0;
  bool operator==(const epoch_seal&) const = default;
};
/// Of how many of the last epochs etcd has the seals. A host finds a restored etcd by the seal of
/// the epoch that it noted last, so it finds one on which others have gone on for up to 32 epochs:
/// some 16 starts of agents. Each renewal reads the seals, and 32 take a kilobyte.
constexpr std::size_t seals_most = 32;

/// The value in etcd of the present epoch.
struct epoch_value {
  epoch_number number = 0;
  std::vector<member> members;
  std::vector<past_epoch> past;
  bool settled = false;             ///< all homes have begun
  std::vector<epoch_seal> seals{};  ///< of the last epochs, the present one last
  bool operator==(const epoch_value&) const = default;

  [[nodiscard]] const member* find(member_id id) const {
    const auto at = std::find_if(members.begin(), members.end(),
                                 [&](const member& m) { return m.who.id == id; });
    return at == members.end() ? nullptr : &*at;
  }
  /// The last epoch that was settled when this one was made: the records of earlier ones have
  /// reached its homes.
  [[nodiscard]] epoch_number records_since() const {
    for (const past_epoch& each : past)
      if (!each.passed_on) return each.number;
    return number;
  }
  /// The members of an earlier epoch that are no members of this one.
  [[nodiscard]] std::vector<identity> missing_of(const past_epoch& then) const {
    std::vector<identity> missing;
    for (const identity& each : then.members)
      if (!has(each)) missing.push_back(each);
    return missing;
  }
  [[nodiscard]] bool has(const identity& who) const {
    const member* const found = find(who.id);
    return found != nullptr && found->who == who;
  }
};

}  // namespace lockflight::cluster
