#include "names/agent/process/reports.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <system_error>
#include <utility>

#include "base/replaced_file.hpp"
#include "lockflight/domain.hpp"

namespace lockflight::cluster {

agent_status reports::status() {
  // The names are gone through only if something has happened to them.
  const agent_counts& counts = of_.counts;
  const std::uint64_t happened =
      counts.messages_sent + counts.messages_received + counts.revocations + counts.rings;
  if (std::exchange(counted_at_, happened) != happened) owned_ = of_.words.names_owned();
  agent_status now;
  now.counts = counts;
  now.owned = owned_;
  now.at_home = of_.words.names_at_home();
  now.domain = of_.domain;
  now.pid = getpid();
  now.written_us = detail::boot_time();
  now.epoch = of_.core.epoch();
  now.incarnation = of_.words.incarnation();
  now.agent = of_.words.last_agent();
  now.deadline_us = of_.words.deadline();
  now.away_until_us = of_.core.stays_away_until();
  now.ttl_us = of_.times.ttl;
  now.names = of_.file.header().count.load();
  now.etcd_trouble = of_.etcd_trouble;
  if (!of_.members) return now;
  now.is_settled = of_.members->keys.epoch && of_.members->keys.epoch->what.settled;
  if (of_.members->keys.epoch) {
    now.epochs_left = last_epoch - of_.members->keys.epoch->what.number;
    const auto& past = of_.members->keys.epoch->what.past;
    now.in_doubt = static_cast<std::uint64_t>(
        std::ranges::count_if(past, [](const past_epoch& each) { return each.passed_on; }));
  }
  add_members(now);
  return now;
}

void reports::add_members(agent_status& to) const {
  std::map<member_id, peer_status> peers;
  for (const peer_status& each : of_.others.status()) peers.emplace(each.who.id, each);
  for (const auto& [id, keys] : of_.members->keys.members) {
    if (!keys.member) continue;
    member_status each;
    each.id = id;
    each.host = of_.members.host_of(id);
    if (const auto at = of_.members->addresses.find(id); at != of_.members->addresses.end())
      each.address = at->second;
    each.is_self = id == of_.words.self();
    each.is_member = of_.members->keys.epoch && of_.members->keys.epoch->what.find(id) != nullptr;
    if (const auto at = peers.find(id); at != peers.end()) {
      each.is_connected = at->second.is_connected;
      each.queued = at->second.queued;
      if (at->second.round_trip)
        each.round_trip_us = static_cast<double>(at->second.round_trip->count()) / 1e3;
    }
    if (keys.beat)
      for (const member_id missed : keys.beat->what.missing)
        each.cannot_hear.push_back(of_.members.host_of(missed));
    to.members.push_back(std::move(each));
  }
}

void reports::warn_of_namesakes() {
  for (const peer_status& each : of_.others.status()) {
    if (!each.is_connected || of_.members.host_of(each.who.id) != of_.host) continue;
    if (!namesakes_.insert(each.who.id).second) continue;
    of_.log.warn(
        "host",
        fmt::format("another host is called '{}' as well, so that nobody can tell who holds a "
                    "lock: give one of them another --host",
                    of_.host),
        {{"member", text_of(each.who.id)}, {"address", each.who.address}});
  }
}

void reports::write_metrics() {
  if (of_.metrics_file.empty()) return;
  constexpr mode_t for_all = 0644;
  const bool is_written = replace_file(of_.metrics_file, metrics_text_of(status()), for_all);
  if (!is_written && has_metrics_)
    of_.log.warn("metrics", fmt::format("{}: cannot be written: {}", of_.metrics_file,
                                        std::generic_category().message(errno)));
  if (is_written && !has_metrics_)
    of_.log.info("metrics", of_.metrics_file + ": can be written again");
  has_metrics_ = is_written;
}

}  // namespace lockflight::cluster
