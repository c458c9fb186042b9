// The choices of a request: locks, workloads, fabrics.
#include <algorithm>

#include "lab/bench/entry/entry.hpp"
#include "lab/bench/plan/launch.hpp"
#include "lab/bench/plan/request.hpp"

namespace lockflight::bench {

const std::vector<lock_row>& lock_table() {
  static const std::vector<lock_row> rows = [] {
    std::vector<lock_row> made;
    for (const lock_entry& e : entries())
      if (e.excludes && !e.about.as_printed)
        made.push_back({e.about,
                        e.about.needs_native_memory ? std::vector<std::string>{"shm"} : fabrics(),
                        e.parameters, e.most_ranks({})});
    return made;
  }();
  return rows;
}

std::vector<std::string> own_locks() {
  std::vector<std::string> names;
  for (const lock_row& row : lock_table())
    if (row.about.source.starts_with("lockflight:")) names.emplace_back(row.about.name);
  return names;
}

const std::vector<std::string>& fabrics() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made{"shm"};
    if (const launch* const it = built_in_launch()) made.push_back(it->fabric());
    made.emplace_back("sim");
    return made;
  }();
  return names;
}

// In the order of `enum class workload`.
const std::vector<workload_row>& workloads() {
  static const std::vector<workload_row> rows{
      {"lb", "latency: acquire and release of each operation, between ordered clock readings"},
      {"ecsb", "empty critical section: throughput"},
      {"sob", "single operation: one get (reader) or put (writer) of a word at the lock's home"},
      {"wcsb", "work in the critical section: a shared counter, then 1 to 4 us of computation"},
      {"warb", "wait after release: empty critical section, 1 to 4 us before the next acquire"},
      {"dht",
       "distributed hash table: inserts (writers) and look-ups of random keys in rank 0's volume"},
      {"table",
       "lock table: random locks of --locks, --locality of them on the own node, nothing inside"},
      {"mix", "MPI windows: a lock on each rank, a random one each time, nothing inside"},
      {"cascade",
       "rank 0 holds, the others queue up; from its release until it has the lock once more"},
      {"contention",
       "--locks of rank 0, client c takes lock c mod L again and again; rank 0 takes none"},
      {"dht-writer",
       "rank 0 has the lock, writes --bytes and releases, while all others come to read; this is "
       "timed"},
      {"primitive",
       "no lock: rank 0 does --operation to another rank, of another node if there are several; of "
       "messages half the way there and back"},
      {"stencil",
       "no lock: strips of a grid, whose ranks wait for their neighbours' flags each iteration"},
      {"zipf",
       "--locks of rank 0, drawn by Zipf's law; one get or put of a word there inside; the ranks "
       "of its node take none"},
  };
  return rows;
}

// In the order of `enum class operation`.
const std::vector<std::string>& operations() {
  static const std::vector<std::string> names{"get",  "put",          "add",    "fetch-add",
                                              "swap", "compare-swap", "message"};
  return names;
}

const std::vector<setting_row>& sweepable_settings() {
  static const std::vector<setting_row> rows{
      {"writers", false}, {"locks", true}, {"locality", false}, {"hold", false}, {"bytes", true}};
  return rows;
}

std::optional<workload> workload_of(const std::string& name) {
  const auto& rows = workloads();
  const auto at = std::find_if(rows.begin(), rows.end(),
                               [&](const workload_row& row) { return row.name == name; });
  if (at == rows.end()) return std::nullopt;
  return static_cast<workload>(at - rows.begin());
}

}  // namespace lockflight::bench
