// The members of the cluster, as etcd had them when it was read last.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "names/agent/etcd/text.hpp"
#include "names/cluster/core/terms.hpp"

namespace lockflight::cluster {

class known_members {
 public:
  /// False if what is known already is newer.
  bool learn(const std::shared_ptr<const etcd_view>& view) {
    if (view_ && view->keys.at < view_->keys.at) return false;
    view_ = view;
    return true;
  }
  /// False: nothing is known yet.
  [[nodiscard]] explicit operator bool() const { return view_ != nullptr; }
  [[nodiscard]] const etcd_view* operator->() const { return view_.get(); }

  /// The name of the member's host; the member's number if that name is not known.
  [[nodiscard]] std::string host_of(member_id id) const;
  /// The hosts that say in etcd that they do not hear member `id`.
  [[nodiscard]] std::vector<std::string> hosts_that_miss(member_id id) const;

 private:
  std::shared_ptr<const etcd_view> view_;
};

}  // namespace lockflight::cluster
