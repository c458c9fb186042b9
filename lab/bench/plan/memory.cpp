#include "lab/bench/plan/memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace lockflight::bench {

double bytes_needed(const job& what) {
  const run_plan& plan = what.plan;
  // The numbers below were measured with 32,768, 65,536 and 663,552 ranks.
  constexpr double each_rank = 14 << 10;
  constexpr double each_writer = 5 << 10;  // another histogram
  constexpr double each_place_in_tree = 4 << 10;
  constexpr double each_in_turn = 3 << 10;      // operations that wait at routers, in a barrier
  constexpr double each_hash_table = 20 << 10;  // which keys a rank inserted
  constexpr double each_handle = 384;
  constexpr double each_place = 32;
  constexpr double each_counter = 48;
  constexpr double each_cell = 24;  // of readers
  const catalogue::parameter_rows parameters = what.lock->parameters;
  const auto has = [&](std::string_view name) {
    return std::any_of(parameters.begin(), parameters.end(),
                       [&](const catalogue::parameter_row& p) { return p.name.starts_with(name); });
  };
  double rank = each_rank;
  if (plan.writers > 0) rank += each_writer;
  if (has("T_L")) rank += each_place_in_tree;
  if (plan.profile->network.arbiter == sim::arbitration::turns) rank += each_in_turn;
  if (plan.what == workload::dht) rank += each_hash_table;
  double handles = has_many_locks(plan.what) ? plan.locks : 1;
  if (plan.what == workload::zipf) {
    // Handles are made of the locks that a rank takes.
    rank += each_place * plan.locks;
    if (plan.ops > 0)
      handles = std::min(handles, static_cast<double>(plan.ops) / plan.machine.ranks());
  }
  if (handles > 1) rank += each_handle * handles;
  // A handle stores what it read of each counter; without T_DC there is a counter on each node. A
  // writer's handle also stores what it read of each reader counter, of which a node has 32 at
  // most.
  if (has("T_DC")) rank += each_counter * plan.machine.nodes() * handles;
  const int of_node = plan.machine.largest_node();
  const double ranks_of_a_cell = plan.machine.nodes() == 1             ? 1
                                 : handles == 1                        ? 2
                                 : handles * 2 <= plan.machine.ranks() ? 4
                                                                       : 16;
  const double most_cells = plan.machine.nodes() == 1 ? of_node : 32;
  const double cells = std::clamp(of_node / ranks_of_a_cell, 1.0, most_cells);
  const double writes = plan.writers * static_cast<double>(plan.ops) / plan.machine.ranks();
  const double written = plan.ops == 0 ? handles : std::min(handles, writes);
  if (has("ranks_per_cell") && plan.writers > 0)
    rank += written * each_cell * cells * plan.machine.nodes();
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
