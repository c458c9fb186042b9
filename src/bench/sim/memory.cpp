#include "bench/sim/memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace lockflight::bench {

double bytes_needed(const job& what) {
  const run_plan& plan = what.plan;
  constexpr double each_rank = 14 << 10;        // measured with 32,768 and 663,552 ranks
  constexpr double each_in_turn = 3 << 10;      // those who wait at routers, in a barrier
  constexpr double each_hash_table = 20 << 10;  // which keys a rank inserted
  constexpr double each_handle = 384;
  constexpr double each_counter = 16;
  const auto& parameters = what.lock->row.parameters;
  const bool counts_apart = std::any_of(parameters.begin(), parameters.end(),
                                        [](const parameter_row& p) { return p.name == "T_DC"; });
  double rank = each_rank;
  if (plan.profile->network.arbiter == sim::arbitration::turns) rank += each_in_turn;
  if (plan.what == workload::dht) rank += each_hash_table;
  if (has_many_locks(plan.what)) rank += each_handle * plan.locks;
  // A handle knows where the counters are; without T_DC there is one on each node.
  if (counts_apart) rank += each_counter * plan.machine.nodes();
  return rank * plan.machine.ranks();
}

double bytes_available() {
  std::ifstream in("/proc/meminfo");
  constexpr double kib = 1024;
  std::string name;
  double amount = 0;
  for (std::string unit; in >> name >> amount && std::getline(in, unit);)
    if (name == "MemAvailable:") return amount * kib;
  return std::numeric_limits<double>::infinity();
}

}  // namespace lockflight::bench
