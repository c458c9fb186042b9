#include "lab/cluster/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lab/cluster/random.hpp"

namespace lockflight::cluster::sim {
namespace {

constexpr std::array<const char*, fault_kinds> names_of_kinds{
    "host dies",    "host stops",  "agent dies",    "agent stops", "host leaves", "client dies",
    "client stops", "one way cut", "link cut",      "peers cut",   "etcd cut",    "etcd silent",
    "host cut off", "no leader",   "late requests", "stale reads", "no hints",    "slow network",
    "key lost",     "host copied", "doubt ends"};

constexpr std::array<const char*, 4> names_of_keys{"member", "beat", "evicted", "cluster"};

/// How often each kind is drawn. That of an operator is drawn apart.
constexpr std::array<int, fault_kinds> weights{4, 2, 6, 2, 4, 8, 3, 1, 1, 2, 3,
                                               3, 3, 2, 2, 2, 1, 1, 3, 2, 0};

fault_kind draw_kind(random_numbers& random) {
  int all = 0;
  for (const int each : weights) all += each;
  auto at = random.below(all);
  int kind = 0;
  for (; at >= weights[static_cast<std::size_t>(kind)]; ++kind)
    at -= weights[static_cast<std::size_t>(kind)];
  return static_cast<fault_kind>(kind);
}

/// Short ones, those of about a TTL, and long ones.
true_time draw_length(random_numbers& random, const timing& times) {
  switch (random.below(4)) {
    case 0:
      return random.between(1'000, times.ttl / 5);
    case 1:
      return random.between(times.ttl / 5, times.ttl);
    case 2:
      return random.between(times.ttl * 9 / 10, times.ttl * 5 / 4);
    default:
      return random.between(times.ttl, times.ttl * 3);
  }
}

fault fault_of_host(fault_kind kind, true_time at, true_time lasts, std::int64_t host) {
  return {kind, at, lasts, static_cast<int>(host), 0, 0, 0};
}

/// In some histories an operator ends doubt, at any time and once more when all faults are over.
void add_statements(random_numbers& random, plan& to) {
  if (!random.one_in(3)) return;
  const auto add = [&](true_time at) {
    to.faults.push_back(fault_of_host(fault_kind::doubt_ends, at, 0, random.below(to.hosts)));
  };
  add(random.between(to.times.ttl, to.faults_end));
  add(to.faults_end + hosts_are_back_after(to.times));
}

/// In some histories some hosts leave at the end, when nothing keeps them from it, or all.
void add_last_leavers(random_numbers& random, plan& to) {
  if (to.stays_cut || !random.one_in(3)) return;
  const auto first = to.faults_end + hosts_are_back_after(to.times) + to.times.ttl;
  const auto many = random.between(1, to.hosts);
  const auto host = random.below(to.hosts);
  for (std::int64_t i = 0; i < many; ++i)
    to.faults.push_back(fault_of_host(fault_kind::host_leaves, first + random.below(to.times.ttl),
                                      to.ends, (host + i) % to.hosts));
}

}  // namespace

plan make_plan(std::uint64_t seed) {
  random_numbers random(seed);
  plan made;
  made.seed = seed;
  made.times.margin = made.times.ttl / 25;
  made.hosts = static_cast<int>(random.between(2, 4));
  made.late_hosts = made.hosts > 2 && random.one_in(2) ? 1 : 0;
  made.names = static_cast<int>(random.between(1, 3));
  made.clients = static_cast<int>(random.between(1, 3));
  constexpr std::array<true_time, 4> idle{200'000, 2'000'000, 5'000'000, 10'000'000};
  made.mean_idle = idle.at(static_cast<std::size_t>(random.below(4)));
  const auto quiet = random.between(1, 2) * made.times.ttl;
  made.faults_end = quiet + random.between(2, 12) * made.times.ttl;
  made.times.longest_absence = 2 * made.times.ttl;
  made.ends = made.faults_end + 10 * made.times.ttl + made.times.longest_absence;
  // In some clusters names are given back that are not used for a while.
  if (random.one_in(2)) made.times.keep = random.between(made.times.ttl / 20, made.times.ttl * 2);
  // Faults come in bursts: each is likely to follow the one before soon.
  const auto many = random.between(1, 8);
  true_time at = quiet;
  for (int i = 0; i < many && at < made.faults_end; ++i) {
    fault each{};
    each.kind = draw_kind(random);
    each.at = at;
    each.lasts = std::min(draw_length(random, made.times), made.faults_end - at);
    each.host = static_cast<int>(random.below(made.hosts));
    each.other = (each.host + 1 + static_cast<int>(random.below(made.hosts - 1))) % made.hosts;
    each.client = static_cast<int>(random.below(made.clients));
    each.count = static_cast<int>(random.below(12));
    made.faults.push_back(each);
    at += random.one_in(2) ? random.between(0, 2'000'000) : draw_length(random, made.times);
  }
  // In some histories nothing happens to hosts, so that nobody may be taken off the members.
  if (random.one_in(8))
    for (fault& each : made.faults)
      each.kind = random.one_in(4) ? fault_kind::slow_network : fault_kind::no_leader;
  made.stays_cut = random.one_in(8);
  if (made.stays_cut) {
    constexpr std::array<fault_kind, 3> kinds{fault_kind::link_cut, fault_kind::both_cut,
                                              fault_kind::peers_cut};
    fault lasting = made.faults.front();
    lasting.kind = kinds.at(static_cast<std::size_t>(random.below(3)));
    lasting.at = made.faults_end;
    lasting.lasts = made.ends;
    made.faults.push_back(lasting);
  }
  add_statements(random, made);
  add_last_leavers(random, made);
  return made;
}

bool is_of_hosts(fault_kind kind) {
  switch (kind) {
    case fault_kind::no_leader:
    case fault_kind::no_hints:
    case fault_kind::slow_network:
    case fault_kind::client_dies:
    case fault_kind::client_stops:
    case fault_kind::doubt_ends:
      return false;
    default:
      return true;
  }
}

std::string text_of(const fault& what) {
  const double seconds = static_cast<double>(what.at) / 1e6;
  std::string text = fmt::format("{:10.6f} s  {}", seconds,
                                 names_of_kinds.at(static_cast<std::size_t>(what.kind)));
  switch (what.kind) {
    case fault_kind::no_leader:
    case fault_kind::no_hints:
    case fault_kind::slow_network:
      break;
    case fault_kind::link_cut:
    case fault_kind::both_cut:
      text += fmt::format(", host {} to host {}", what.host, what.other);
      break;
    case fault_kind::client_dies:
    case fault_kind::client_stops:
      text +=
          fmt::format(", client {} of host {}, after {} steps", what.client, what.host, what.count);
      break;
    case fault_kind::key_lost:
      text += fmt::format(", host {}, {}", what.host,
                          names_of_keys.at(static_cast<std::size_t>(what.count) % 4));
      break;
    case fault_kind::agent_dies:
      text += fmt::format(", host {}, before write {}", what.host, what.count);
      break;
    default:
      text += fmt::format(", host {}", what.host);
  }
  return text + fmt::format(", {:.3f} s", static_cast<double>(what.lasts) / 1e6);
}

}  // namespace lockflight::cluster::sim
