// The start of a cluster's domain anew after its etcd was restored from a copy or set up anew
// (docs/cluster.md, "Recovery").
//
// Such an etcd does not know which hosts trust their deadlines, which tokens were given out, and
// which holders have died. So all agents refuse it. A recovery takes all members' keys away, and
// then makes an epoch above all that are known, by one transaction. So all tokens are greater than
// before. The epoch has no members, and leaves each name in doubt, so that the first holder of each
// name is told of a death.
#pragma once

#include <functional>
#include <string>

#include "agent/process/process.hpp"

namespace lockflight::cluster {

/// By how much the epoch of a recovery is above the last one that this host or etcd knows, since
/// another host may have noted a later one. A host whose note has an epoch above that of the
/// recovery refuses the etcd, and names both epochs.
constexpr epoch_number epochs_left_out = 1'000;

class recovery {
 public:
  /// Finds out what is to be done. `above` is an epoch that the next one is to be above, or 0.
  /// Throws agent_error if this host knows no epoch and none is given, if the agent of this host
  /// runs, or if no epoch is left; and what agent_process throws.
  recovery(const agent_options& options, epoch_number above);

  /// Lines for an operator: what the recovery will do, what is kept, and what cannot be kept.
  [[nodiscard]] std::vector<std::string> plan() const;
  [[nodiscard]] std::chrono::milliseconds waits_for() const { return ttl_; }
  /// To be called when waits_for() is over, so that no host trusts its deadline any more. Throws
  /// agent_error if a host has renewed since this object was made, because its agent has not ended.
  void carry_out();

 private:
  void erase_members(const etcd_view& seen);

  agent_options options_;
  std::shared_ptr<detail::domain_file> file_;
  store_identity_file identity_file_;
  std::optional<store_identity> noted_;
  etcd_client etcd_;
  std::shared_ptr<const etcd_view> before_;
  epoch_number next_ = 0;
  cluster_value cluster_;
  std::chrono::milliseconds ttl_;
};

}  // namespace lockflight::cluster
