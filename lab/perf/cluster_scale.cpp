// The load that many hosts put on etcd, and how long they take to go on after the loss of some, in
// the simulation of clusters (lab/cluster), for lab/perf/perf_cluster.
//
// usage: cluster_scale HOSTS LOST TTL
//
// HOSTS hosts join, each with a client that uses its own and others' names. When they have come to
// rest, LOST hosts die at the same moment. Prints JSON. The sizes of keys and values are those of
// the real client of etcd; etcd itself, the links and the processors take no longer with more
// hosts.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

#include "lab/cluster/campaign.hpp"
#include "lab/cluster/world.hpp"
#include "names/agent/etcd/text.hpp"

namespace {

using namespace lockflight::cluster;

constexpr double us_of_second = 1e6;

/// The bytes of a key and its value in a reply of etcd's gateway: both in base 64, and the
/// revisions around them.
std::uint64_t size_of_entry(const std::string& key, const std::string& value) {
  constexpr std::uint64_t of_fields = 90;
  return (key.size() + value.size()) * 4 / 3 + of_fields;
}

std::uint64_t size_of_answer(const snapshot& keys) {
  const domain_keys names("jobs");
  const member_place place{"10.0.100.100:7411", "host-1000.example.org"};
  std::uint64_t all = 0;
  const auto add = [&](const key& at, const value& what, const member_place* with) {
    all += size_of_entry(names.text_of(at), text_of(what, with));
  };
  if (keys.epoch) add({key_kind::epoch}, keys.epoch->what, nullptr);
  for (const auto& [id, each] : keys.members) {
    if (each.member) add({key_kind::member, id}, each.member->what, &place);
    if (each.beat) add({key_kind::beat, id}, each.beat->what, nullptr);
  }
  return all;
}

sim::plan plan_of(int hosts, int lost, instant ttl, sim::true_time lost_at) {
  sim::plan made;
  made.hosts = hosts;
  made.names = hosts;
  made.clients = 1;
  made.times.ttl = ttl;
  made.times.margin = ttl / 20;
  made.times.keep = 60 * ttl;
  made.mean_idle = ttl / 2;
  made.faults_end = made.ends = 1'000 * ttl;
  for (int i = 0; i < lost; ++i)
    made.faults.push_back({sim::fault_kind::host_dies, lost_at, 1'000 * ttl, i, 0, 0, 0});
  return made;
}

/// The time until there is a settled epoch of so many members; 0 if there is none in time.
double seconds_until(sim::world& of, std::size_t members, sim::true_time from, sim::true_time end) {
  constexpr sim::true_time step = 50'000;
  for (sim::true_time at = from; at < end; at += step) {
    of.run_until(at);
    const epoch_value* const now = of.epoch();
    if (now != nullptr && now->settled && now->members.size() == members)
      return static_cast<double>(at - from) / us_of_second;
  }
  return 0;
}

void measure(int hosts, int lost, double ttl_s) {
  const auto ttl = static_cast<instant>(ttl_s * us_of_second);
  const sim::true_time rests_from = 3 * ttl;
  const sim::true_time lost_at = 4 * ttl;
  sim::world all(plan_of(hosts, lost, ttl, lost_at), sim::intact_core(), nullptr);
  std::uint64_t most_bytes = 0;
  std::uint64_t bytes_now = 0;
  all.size_of = [&](const snapshot& keys) {
    bytes_now = size_of_answer(keys);
    most_bytes = std::max(most_bytes, bytes_now);
    return bytes_now;
  };
  const double joined = seconds_until(all, static_cast<std::size_t>(hosts), 0, rests_from);
  if (joined == 0) throw std::runtime_error("the hosts have not joined in three times the TTL");
  const epoch_number epochs_to_join = all.epoch()->number;
  all.run_until(rests_from);
  const sim::world::load before = all.done();
  const std::uint64_t entries_before = all.entries();
  most_bytes = 0;
  all.run_until(lost_at);
  const sim::world::load rest = all.done();
  const std::uint64_t bytes_at_rest = bytes_now;
  const std::uint64_t entries = all.entries() - entries_before;
  const double rested = static_cast<double>(lost_at - rests_from) / us_of_second;
  const epoch_number epoch_before = all.epoch()->number;
  const double took =
      seconds_until(all, static_cast<std::size_t>(hosts - lost), lost_at, lost_at + 20 * ttl);
  const sim::world::load after = all.done();
  const auto rate = [](std::uint64_t to, std::uint64_t from, double seconds) {
    return static_cast<double>(to - from) / seconds;
  };
  std::printf(
      "{\"hosts\": %d, \"lost\": %d, \"ttl_s\": %g, \"joined_s\": %.1f, \"epochs_to_join\": %u, "
      "\"requests_per_s\": %.1f, \"writes_per_s\": %.1f, \"read_mb_per_s\": %.3f, "
      "\"answer_kb\": %.1f, \"acquires\": %llu, \"requests_per_renewal\": %.3f, "
      "\"loss_s\": %.1f, \"loss_epochs\": %u, \"loss_requests_per_s\": %.1f, "
      "\"loss_read_mb_per_s\": %.3f, \"loss_answer_kb\": %.1f, \"loss_messages\": %llu}\n",
      hosts, lost, ttl_s, joined, epochs_to_join, rate(rest.requests, before.requests, rested),
      rate(rest.writes, before.writes, rested),
      rate(rest.bytes_read, before.bytes_read, rested) / 1e6,
      static_cast<double>(bytes_at_rest) / 1e3, static_cast<unsigned long long>(entries),
      rate(rest.requests, before.requests, rested) / (hosts * 12 / ttl_s), took,
      all.epoch()->number - epoch_before, rate(after.requests, rest.requests, took),
      rate(after.bytes_read, rest.bytes_read, took) / 1e6, static_cast<double>(most_bytes) / 1e3,
      static_cast<unsigned long long>(after.messages - rest.messages));
}

}  // namespace

int main(int argc, char** argv) try {
  constexpr int given = 3;
  const int hosts = argc == given + 1 ? std::atoi(argv[1]) : 0;
  const int lost = argc == given + 1 ? std::atoi(argv[2]) : -1;
  const double ttl_s = argc == given + 1 ? std::atof(argv[3]) : 0;
  if (hosts < 1 || lost < 0 || lost >= hosts || !(ttl_s > 0)) {
    std::fputs("usage: cluster_scale HOSTS LOST TTL (accepted: 0 <= LOST < HOSTS, TTL > 0)\n",
               stderr);
    return 2;
  }
  measure(hosts, lost, ttl_s);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "cluster_scale: %s\n", e.what());
  return 3;
}
