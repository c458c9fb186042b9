// The keys of etcd, as its leader has them, and as they were some time ago.
//
// Transactions are atomic and in one order. Which of them arrive, which answers get back, and who
// reads old keys, is decided by the world around this.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "names/cluster/core/keys.hpp"

namespace lockflight::cluster::sim {

class etcd {
 public:
  /// Called with the epoch before and after a transaction that has written another one.
  std::function<void(const epoch_value& before, const epoch_value& after)> on_epoch;

  [[nodiscard]] answer carry_out(const transaction& what);
  /// The answer of a member of etcd that lags behind: the keys before the last transactions.
  [[nodiscard]] answer read_stale(std::size_t transactions_ago) const;
  [[nodiscard]] const std::shared_ptr<const snapshot>& now() const { return history_.back(); }

 private:
  static constexpr std::size_t most_history = 200;

  std::deque<std::shared_ptr<const snapshot>> history_{std::make_shared<snapshot>()};
};

}  // namespace lockflight::cluster::sim
