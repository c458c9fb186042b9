// The outbox, into which the parts of an agent put the messages of the epoch that the agent is in.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "names/cluster/core/message.hpp"

namespace lockflight::cluster {

class outbox {
 public:
  outbox(member_id self, epoch_number epoch, std::vector<message>& to)
      : self_(self), epoch_(epoch), to_(to) {}

  [[nodiscard]] member_id self() const { return self_; }
  void send(member_id to, const std::string& name, body what) {
    to_.push_back({self_, to, epoch_, name, std::move(what)});
  }

 private:
  member_id self_;
  epoch_number epoch_;
  std::vector<message>& to_;
};

}  // namespace lockflight::cluster
