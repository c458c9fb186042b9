// The keys of a cluster in etcd, and the transactions on them.
//
// All comparisons of a transaction are of the revision in which a key was changed last. Each
// transaction, whether its comparisons held or not, answers with all keys as they are after it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "names/cluster/core/terms.hpp"

namespace lockflight::cluster {

enum class key_kind : std::uint8_t { epoch, member, beat, evicted, cluster };

struct key {
  key_kind kind = key_kind::epoch;
  member_id id = 0;  ///< 0 for the epoch and the cluster, of which there is one
  auto operator<=>(const key&) const = default;
};

/// Says that a member is there. Its agent writes this value, and a transaction that makes an epoch
/// deletes it.
struct member_value {
  incarnation_number incarnation = 0;
  agent_number agent = 0;
  bool retires = false;
  bool operator==(const member_value&) const = default;
};
/// Says that a member's agent was able to write.
struct beat_value {
  epoch_number begun = 0;          ///< the last epoch that the member has begun in, as home
  std::vector<member_id> missing;  ///< the members that it has not heard for a while
  beat_number number = 0;
  bool operator==(const beat_value&) const = default;
};
/// Says that a member may not renew any more.
struct evicted_value {
  bool operator==(const evicted_value&) const = default;
};
/// Says which cluster this is. The transaction that makes the first epoch makes this key, too.
struct cluster_value {
  std::uint64_t id = 0;  ///< random
  /// How often an operator has let the cluster go on with an etcd that was restored or set up anew.
  std::uint32_t recoveries = 0;
  bool operator==(const cluster_value&) const = default;
};
using value = std::variant<epoch_value, member_value, beat_value, evicted_value, cluster_value>;

struct comparison {
  key of;
  revision changed = 0;  ///< 0: there is no such key
};
struct put {
  key at;
  value what;
};
struct transaction {
  std::vector<comparison> when;
  std::vector<put> puts;
  std::vector<key> erased;
};

/// Of how many members a transaction erases the keys: three of each, and etcd carries out 128
/// operations in a transaction, unless it is told otherwise. The other 8 are for what is written
/// and read with them.
constexpr std::size_t members_erased_at_once = 40;

template <class Value>
struct stored {
  Value what;
  revision created = 0;
  revision changed = 0;
};

/// The keys of one member.
struct member_keys {
  std::optional<stored<member_value>> member;
  std::optional<stored<beat_value>> beat;
  bool evicted = false;
};

/// All keys in one revision.
struct snapshot {
  revision at = 0;
  std::optional<stored<epoch_value>> epoch;
  std::optional<stored<cluster_value>> cluster;
  std::map<member_id, member_keys> members;

  [[nodiscard]] const member_keys* find(member_id id) const {
    const auto found = members.find(id);
    return found == members.end() ? nullptr : &found->second;
  }
};

struct answer {
  bool succeeded = false;
  std::shared_ptr<const snapshot> seen;
};

}  // namespace lockflight::cluster
