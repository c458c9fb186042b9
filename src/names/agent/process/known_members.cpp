#include "names/agent/process/known_members.hpp"

#include <algorithm>

namespace lockflight::cluster {

std::string known_members::host_of(member_id id) const {
  if (view_)
    if (const auto found = view_->hosts.find(id); found != view_->hosts.end()) return found->second;
  return text_of(id);
}

std::vector<std::string> known_members::hosts_that_miss(member_id id) const {
  std::vector<std::string> all;
  if (!view_) return all;
  for (const auto& [by, keys] : view_->keys.members)
    if (keys.beat && std::ranges::count(keys.beat->what.missing, id) > 0)
      all.push_back(host_of(by));
  return all;
}

}  // namespace lockflight::cluster
