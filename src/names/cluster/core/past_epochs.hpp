// How long the list of the epochs that are over may get (epoch_value::past).
//
// Each change of the members adds an entry, and entries go when an epoch is settled. An agent that
// ends and starts again, before all homes have begun, keeps the list growing. The list is one value
// of etcd, which holds 1.5 MB.
#pragma once

#include <cstddef>
#include <vector>

#include "names/cluster/core/terms.hpp"

namespace lockflight::cluster {

constexpr std::size_t past_epochs_most = 64;

/// The entry of an epoch that another one follows.
[[nodiscard]] past_epoch past_of(const epoch_value& epoch);

/// Leaves out entries that say nothing which a later one does not say. If more than
/// `past_epochs_most` are left, merges the older half of them into one, under which each name is in
/// doubt.
void shorten(std::vector<past_epoch>& past);

}  // namespace lockflight::cluster
