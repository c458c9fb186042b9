// The time for which `lockflight run` waits.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"
#include "lockflight/domain.hpp"

namespace lockflight::cli {

/// How long other hosts have for an answer while a run waits: the run asks them from inside of its
/// wait, which does not go on meanwhile.
constexpr std::chrono::milliseconds hosts_answer_run_within{300};

/// The rest of the time for waiting, which goes on while the process is stopped.
class time_left {
 public:
  explicit time_left(limit patience) : patience_(patience), began_ns_(now_ns()) {}

  /// An attempt (0) also if the run was to wait and its time is over.
  [[nodiscard]] limit now() const {
    if (patience_.is_attempt() || patience_.is_for_ever()) return patience_;
    const std::uint64_t gone_ns = now_ns() - began_ns_;
    return limit::of_ns(patience_.nanoseconds() - std::min(gone_ns, patience_.nanoseconds()));
  }
  [[nodiscard]] bool is_over() const { return now().is_attempt(); }
  /// The time that other hosts may take to name the holder of a lock, while the run waits.
  [[nodiscard]] std::chrono::milliseconds for_hosts() const {
    return std::min(hosts_answer_run_within,
                    std::chrono::milliseconds(now().nanoseconds() / 2 /
                                              nanoseconds_of(std::chrono::milliseconds(1))));
  }

 private:
  limit patience_;
  std::uint64_t began_ns_;
};

}  // namespace lockflight::cli
