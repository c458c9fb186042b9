// The memory that the worker processes and the campaign share: the data that the locks guard, the
// state of each worker, the pending order, and the first broken rule.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "tests/names/deaths/locks.hpp"

namespace lockflight::test {

using clock = std::chrono::steady_clock;

constexpr int most_processes = 64;

/// The data that one lock guards. Only the exclusive holder writes them, without atomics, so that a
/// second holder would leave traces.
struct guarded {
  std::uint64_t first = 0;     ///< differs from `second` only while a holder is writing
  std::uint64_t second = 0;    ///< the copy of `first` that ends an update
  std::uint64_t count = 0;     ///< the number of updates
  std::uint64_t token = 0;     ///< the token of the last holder
  std::uint64_t told = 0;      ///< the number of holders that saw owner_died()
  std::uint64_t removals = 0;  ///< shared_state::removals at the last write
};

/// The position of a worker, which the campaign reads when the worker is dead.
enum class where : int { outside, on_the_way, inside };

struct worker_state {
  std::atomic<int> lock{-1};
  std::atomic<where> is{where::outside};
  std::atomic<bool> exclusive{false};
  /// The number of the process in the campaign's namespace. A worker in a namespace of its own has
  /// another number there.
  std::atomic<pid_t> pid{-1};
  std::atomic<std::uint64_t> updates[most_locks];
  std::atomic<std::uint64_t> stopped_ns{0};  ///< the total time for which the worker was stopped
};

/// An order to a worker. The worker obeys wherever it is, also as a holder.
enum order : int { to_exit, to_become_an_image, to_make_a_child, to_enter_a_namespace };
/// The value of shared_state::told for an order to that worker.
constexpr int order_to(int worker, order what) { return what * most_processes + worker; }

struct shared_state {
  std::atomic<bool> stop{false};
  std::atomic<int> told{-1};                           ///< the pending order_to a worker
  std::atomic<std::uint64_t> left_inside[most_locks];  ///< images that ended as exclusive holders
  /// The longest wait for each lock, without the time for which the waiter itself was stopped.
  std::atomic<std::uint64_t> longest_wait_ns[most_locks];
  std::atomic<std::uint64_t> acquires{0};
  /// The counter grows when all workers have died, before the domain is removed: the holders in the
  /// next domain are not told of deaths in this one.
  std::atomic<std::uint64_t> removals{0};
  std::atomic<int> broken{0};  ///< the number of reports
  char what[1024] = {};        ///< the text of the first report
  guarded data[most_locks];
  worker_state worker[most_processes];
};

/// Maps the shared state behind a descriptor. A new one is not constructed yet.
shared_state& map_shared(int memory);

/// Records that a rule is broken, which ends the campaign.
void report(shared_state& all, const std::string& what);

}  // namespace lockflight::test
