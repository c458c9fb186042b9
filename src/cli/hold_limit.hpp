// When a run has to end its command: the deadline of its host in a cluster, the time limit of
// --max-hold, and the order of an operator (`lockflight break`).
//
// At the deadline of the host another one may hold, so the command has ended before. At the end of
// the hold nobody else holds before the run has released: SIGTERM is sent then, and SIGKILL after
// the grace.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/deadline_watch.hpp"
#include "lockflight/domain.hpp"

namespace lockflight::cli {

/// Between SIGTERM and SIGKILL, unless the run says otherwise.
constexpr std::chrono::seconds usual_grace_after_end{5};

class hold_limit {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  struct settings {
    std::optional<nanoseconds> max_hold;
    nanoseconds before_deadline{0};  ///< SIGTERM comes so long before the deadline of the host
    nanoseconds after_end{0};        ///< SIGKILL comes so long after the end of the hold
  };
  /// For a holder, whose time limit begins now.
  hold_limit(named_handle& held, const settings& how);

  [[nodiscard]] deadline_watch::times due();
  /// When a tenth of the time limit is left: how much, once. An operator's order is not announced.
  [[nodiscard]] std::optional<nanoseconds> warning();
  /// How far ahead the warning is; deadline_watch::never if none is to come.
  [[nodiscard]] nanoseconds until_warning() const;

 private:
  named_handle& held_;
  settings how_;
  bool has_warned_ = false;
  std::uint64_t ended_at_ns_ = 0;  // when this process saw that the hold has ended
};

/// Why the command was ended: "limit", "broken", or "host" if the host has lost the cluster.
[[nodiscard]] const char* word_of_loss(named_handle& held);

}  // namespace lockflight::cli
