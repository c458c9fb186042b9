// The lock of one name inside one host: shared or exclusive, first come, first served, and robust.
// This lock stands for a lock of the table under `robust`.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "names/cluster/core/terms.hpp"

namespace lockflight::cluster::sim {

class host_lock {
 public:
  /// A client's number, or the agent.
  using user = int;
  static constexpr user agent = -1;

  /// Admits the waiters that can have the lock now, and returns them.
  [[nodiscard]] std::vector<user> admit();
  /// True if somebody waits.
  [[nodiscard]] bool is_awaited() const { return !queue_.empty(); }
  void enqueue(user who, mode wanted) { queue_.push_back({who, wanted}); }
  [[nodiscard]] bool is_free() const { return holders_.empty() && queue_.empty(); }
  /// Leaves the lock or its queue. Called for the dead as well.
  void leave(user who);

 private:
  struct entry {
    user who;
    mode wanted;
  };
  std::deque<entry> queue_;
  std::vector<entry> holders_;
};

inline std::vector<host_lock::user> host_lock::admit() {
  std::vector<user> admitted;
  while (!queue_.empty()) {
    const entry head = queue_.front();
    const bool is_compatible = holders_.empty() || (head.wanted == mode::shared &&
                                                    holders_.front().wanted == mode::shared);
    if (!is_compatible) break;
    queue_.pop_front();
    holders_.push_back(head);
    admitted.push_back(head.who);
  }
  return admitted;
}

inline void host_lock::leave(user who) {
  std::erase_if(queue_, [&](const entry& each) { return each.who == who; });
  std::erase_if(holders_, [&](const entry& each) { return each.who == who; });
}

}  // namespace lockflight::cluster::sim
