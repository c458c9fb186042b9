// The start of a cluster's domain anew after its etcd was restored from a copy or set up anew
// (docs/cluster.md, "Recovery").
//
// Such an etcd does not know which hosts trust their deadlines, which tokens were given out, and
// which holders have died. So all agents refuse it. A recovery takes all members' keys away, and
// then makes an epoch above all that are known, by one transaction. So all tokens are greater than
// before. The epoch has no members, and leaves each name in doubt, so that the first holder of each
// name is told of a death.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "names/agent/process/process.hpp"

namespace lockflight::cluster {

/// By how much the epoch of a recovery is above the last one that this host or etcd knows, since
/// another host may have noted a later one. A host whose note has an epoch above that of the
/// recovery refuses the etcd, and names both epochs. Each start of an agent takes one or two
/// epochs, so this host may have been away for some 500 starts of the others; and a domain has
/// epochs for a thousand recoveries.
constexpr epoch_number epochs_left_out = 1'000;

class recovery {
 public:
  /// Finds out what is to be done. `above` is an epoch that the next one is to be above, or 0.
  /// Throws agent_error if this host was no member, if the agent of this host runs, or if no epoch
  /// is left; and what agent_process throws. With `above`, a host counts as a member whose domain
  /// file has the id of a cluster.
  recovery(const agent_options& options, epoch_number above);

  /// False if this host's agent would go on with this etcd, so that a recovery would only use up
  /// epochs and tell each first holder of a death.
  [[nodiscard]] bool is_needed() const;
  /// Lines for an operator: what the recovery will do, what is kept, and what cannot be kept.
  [[nodiscard]] std::vector<std::string> plan() const;
  [[nodiscard]] std::chrono::milliseconds waits_for() const { return ttl_; }
  /// To be called when waits_for() is over, so that no host trusts its deadline any more. Throws
  /// agent_error if an agent has written keys since this object was made, because it has not ended,
  /// or another recovery has. When all is done, returns the reason why this host could not note it,
  /// or nothing.
  [[nodiscard]] std::optional<std::string> carry_out();

 private:
  [[nodiscard]] cluster_value cluster_to_go_on() const;
  void erase_members(const etcd_view& seen);
  etcd_answer write(const etcd_view& seen, const transaction& what);

  agent_options options_;
  std::shared_ptr<detail::domain_file> file_;
  store_identity_file identity_file_;
  std::optional<store_identity> noted_;
  asio::io_context io_;
  etcd_client etcd_;
  std::shared_ptr<const etcd_view> before_;
  epoch_number next_ = 0;
  cluster_value cluster_;
  std::chrono::milliseconds ttl_;
};

}  // namespace lockflight::cluster
