#include "names/cluster/core/past_epochs.hpp"

#include <algorithm>
#include <iterator>

#include "names/cluster/core/rendezvous.hpp"

namespace lockflight::cluster {
namespace {

/// True if `later` has the same homes, and the same of them are gone. A home that has no record of
/// an epoch after the earlier one has none of an epoch after the later one either, so it is in
/// doubt by `later` whenever it is in doubt by the other.
bool says_the_same(const past_epoch& earlier, const past_epoch& later) {
  past_epoch as_later = earlier;
  as_later.number = later.number;
  return as_later == later;
}

/// (!) The first entry that is not passed on stays as it is: records since that epoch are kept
/// (epoch_value::records_since).
std::vector<past_epoch>::iterator first_not_passed_on(std::vector<past_epoch>& past) {
  return std::ranges::find_if(past, [](const past_epoch& each) { return !each.passed_on; });
}

void leave_out_repeated(std::vector<past_epoch>& past) {
  const std::vector<past_epoch> all = past;
  const auto needed = std::distance(past.begin(), first_not_passed_on(past));
  past.clear();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_repeated =
        std::any_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(),
                    [&](const auto& each) { return says_the_same(all[i], each); });
    if (!is_repeated || static_cast<std::ptrdiff_t>(i) == needed) past.push_back(all[i]);
  }
}

void merge_older_half(std::vector<past_epoch>& past) {
  std::vector<past_epoch> older(past.begin(), past.begin() + past_epochs_most / 2);
  const auto needed = first_not_passed_on(older);
  std::vector<past_epoch> kept;
  if (needed != older.end()) {
    kept.push_back(*needed);
    older.erase(needed);
  }
  // Without members it stands for any, and its number is the last, so it says more than each did.
  kept.push_back({older.back().number, {}, older.back().passed_on, {}});
  std::ranges::sort(kept, {}, &past_epoch::number);
  past.erase(past.begin(), past.begin() + past_epochs_most / 2);
  past.insert(past.begin(), kept.begin(), kept.end());
}

}  // namespace

past_epoch past_of(const epoch_value& epoch) {
  past_epoch past{epoch.number, possible_homes(epoch.members), false, {}};
  past.has_leavers = past.members.size() != epoch.members.size();
  return past;
}

void shorten(std::vector<past_epoch>& past) {
  leave_out_repeated(past);
  if (past.size() > past_epochs_most) merge_older_half(past);
}

}  // namespace lockflight::cluster
