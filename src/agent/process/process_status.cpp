// The status that an agent reports.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "agent/process/process.hpp"
#include "agent/process/service_manager.hpp"
#include "base/replaced_file.hpp"
#include "domain/cluster/agent_bell.hpp"
#include "domain/cluster/elsewhere.hpp"

namespace lockflight::cluster {

/// Looks after the files and sockets that other programs may remove, and writes the metrics.
void agent_process::each_second() {
  constexpr auto period = std::chrono::seconds(1);
  if (!options_.metrics_file.empty()) write_metrics();
  if (core_->epoch() == 0) notify_service_manager(extends_start);
  if (!file_->is_current()) return end_with(file_->place().path + ": has been removed");
  try {
    make_sockets_again();
  } catch (const domain_error& e) {
    return end_with(e.what());
  }
  warn_of_namesakes();
  status_timer_.expires_after(period);
  status_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) each_second();
  });
}

/// Warns once about each other member that has this host's name and answers. A member that does not
/// answer may be this host itself, from before its domain file was made anew.
void agent_process::warn_of_namesakes() {
  for (const peer_status& each : links_->status()) {
    if (!each.is_connected || host_of(each.who.id) != place_.host) continue;
    if (!namesakes_.insert(each.who.id).second) continue;
    log_.warn(
        "host",
        fmt::format("another host is called '{}' as well, so that nobody can tell who holds a "
                    "lock: give one of them another --host",
                    place_.host),
        {{"member", text_of(each.who.id)}, {"address", each.who.address}});
  }
}

/// A collector sees by its time that the file is old, if it cannot be written.
void agent_process::write_metrics() {
  constexpr mode_t for_all = 0644;
  const bool is_written =
      replace_file(options_.metrics_file, metrics_text_of(status_now()), for_all);
  if (!is_written && has_metrics_)
    log_.warn("metrics", fmt::format("{}: cannot be written: {}", options_.metrics_file,
                                     std::generic_category().message(errno)));
  if (is_written && !has_metrics_)
    log_.info("metrics", options_.metrics_file + ": can be written again");
  has_metrics_ = is_written;
}

/// A program that cleans up old files may have removed the sockets beside the domain file. Then
/// nobody could ring, and waiters would wait for ever.
void agent_process::make_sockets_again() {
  const auto is_missing = [](const std::string& path) {
    return access(path.c_str(), F_OK) != 0 && errno == ENOENT;
  };
  if (is_missing(detail::question_path_of(*file_))) questions_->listen_again();
  if (is_missing(detail::bell_path_of(*file_))) {
    bell_.close();
    start_bell();
    log_.warn("bell", detail::bell_path_of(*file_) + ": has been removed, and is made anew");
  }
  ring_if_missed();
}

agent_status agent_process::status_now() {
  // The names are gone through only if something has happened to them.
  const std::uint64_t happened =
      counts_.messages_sent + counts_.messages_received + counts_.revocations + counts_.rings;
  if (happened != counted_at_) {
    counted_at_ = happened;
    counts_.owned = words_.names_owned();
  }
  counts_.at_home = words_.names_at_home();
  agent_status now = counts_;
  now.domain = options_.domain;
  now.pid = getpid();
  now.written_us = detail::boot_time();
  now.epoch = core_->epoch();
  now.incarnation = words_.incarnation();
  now.agent = words_.last_agent();
  now.deadline_us = words_.deadline();
  now.away_until_us = core_->stays_away_until();
  now.ttl_us = times_.ttl;
  now.names = file_->header().count.load();
  now.etcd_trouble = etcd_trouble_;
  if (!view_) return now;
  now.is_settled = view_->keys.epoch && view_->keys.epoch->what.settled;
  if (view_->keys.epoch) {
    now.epochs_left = last_epoch - view_->keys.epoch->what.number;
    const auto& past = view_->keys.epoch->what.past;
    now.in_doubt = static_cast<std::uint64_t>(
        std::ranges::count_if(past, [](const past_epoch& each) { return each.passed_on; }));
  }
  std::map<member_id, peer_status> peers;
  for (const peer_status& each : links_->status()) peers.emplace(each.who.id, each);
  for (const auto& [id, keys] : view_->keys.members) {
    if (!keys.member) continue;
    member_status each;
    each.id = id;
    each.host = host_of(id);
    if (const auto at = view_->addresses.find(id); at != view_->addresses.end())
      each.address = at->second;
    each.is_self = id == words_.self();
    each.is_member = view_->keys.epoch && view_->keys.epoch->what.find(id) != nullptr;
    if (const auto at = peers.find(id); at != peers.end()) {
      each.is_connected = at->second.is_connected;
      each.queued = at->second.queued;
      if (at->second.round_trip)
        each.round_trip_us = static_cast<double>(at->second.round_trip->count()) / 1e3;
    }
    if (keys.beat)
      for (const member_id missed : keys.beat->what.missing)
        each.cannot_hear.push_back(host_of(missed));
    now.members.push_back(std::move(each));
  }
  return now;
}

}  // namespace lockflight::cluster
