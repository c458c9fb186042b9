// The plan of one simulated history: the cluster, and the faults that befall it. A seed makes a
// plan; a shortened counterexample is a plan with fewer faults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/cluster/host_clock.hpp"
#include "names/cluster/core/agent_events.hpp"

namespace lockflight::cluster::sim {

enum class fault_kind : std::uint8_t {
  host_dies,      ///< loses its memory; comes back as another member
  host_stops,     ///< and goes on
  agent_dies,     ///< before the write `count`, or at once; starts again
  agent_stops,    ///< and goes on
  host_leaves,    ///< as it should; comes back as another incarnation
  client_dies,    ///< after `count` steps
  client_stops,   ///< between two steps
  link_cut,       ///< from `host` to `other`
  both_cut,       ///< both directions between the two
  peers_cut,      ///< all links of the host
  etcd_cut,       ///< the host reaches no etcd
  etcd_silent,    ///< etcd gets what the host sends, and no answer comes back
  host_cut,       ///< peers and etcd
  no_leader,      ///< etcd carries out nothing; what was sent may be carried out afterwards
  late_requests,  ///< transactions of the host are carried out up to three TTLs late
  stale_reads,    ///< the host's reads show keys of some time ago
  no_hints,       ///< watches say nothing
  slow_network,   ///< messages take up to a second
  key_lost,       ///< one of the host's keys is deleted in etcd
  host_copied,    ///< another agent runs on a copy of its words, and reaches etcd alone
  doubt_ends,     ///< no fault: an operator says that what lost hosts left is put right
};
constexpr int fault_kinds = 21;

struct fault {
  fault_kind kind;
  true_time at;
  true_time lasts;
  int host;
  int other;
  int client;
  int count;
};

struct plan {
  std::uint64_t seed = 1;
  int hosts = 3;
  int late_hosts = 0;  ///< of them that start later
  int names = 2;
  int clients = 3;  ///< of each host
  true_time mean_idle = 2'000'000;
  true_time faults_end = 0;
  true_time ends = 0;
  /// A cut between hosts that does not end: the others must go on without one of them.
  bool stays_cut = false;
  timing times;
  std::vector<fault> faults;
};

/// So long after the last fault all hosts are members again.
[[nodiscard]] constexpr true_time hosts_are_back_after(const timing& times) {
  return 4 * times.ttl + times.longest_absence;
}

/// True if hosts or links fail, and not etcd, the network as a whole or clients alone.
[[nodiscard]] bool is_of_hosts(fault_kind kind);

[[nodiscard]] plan make_plan(std::uint64_t seed);
[[nodiscard]] std::string text_of(const fault& what);

}  // namespace lockflight::cluster::sim
