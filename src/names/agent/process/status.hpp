// The status that an agent reports: to programs that ask on its host, and in the form that
// Prometheus reads.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "names/cluster/core/terms.hpp"

namespace lockflight::cluster {

struct member_status {
  member_id id = 0;
  std::string host;
  std::string address;
  bool is_self = false;
  bool is_member = false;     ///< of the present epoch
  bool is_connected = false;  ///< this agent's messages get there
  std::optional<double> round_trip_us;
  std::uint64_t queued = 0;              ///< messages that it has not acknowledged
  std::vector<std::string> cannot_hear;  ///< hosts that it misses, as its beat says
};

/// Counters of events since the agent started.
struct agent_counts {
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t transactions = 0, revocations = 0, rings = 0;
};

struct agent_status {
  std::string domain;
  bool answers = true;  ///< false: the agent does not say this, and what follows is not known
  int pid = 0;
  std::int64_t written_us = 0;  ///< when, on CLOCK_BOOTTIME
  epoch_number epoch = 0;
  bool is_settled = false;
  epoch_number epochs_left = last_epoch;  ///< after the last one the members stay as they are
  incarnation_number incarnation = 0;
  agent_number agent = 0;
  std::int64_t deadline_us = 0;    ///< on CLOCK_BOOTTIME; 0: none
  std::int64_t away_until_us = 0;  ///< the others did not hear this host; on CLOCK_BOOTTIME
  std::int64_t ttl_us = 0;
  std::uint64_t names = 0;    ///< names that have a lock on this host
  std::uint64_t owned = 0;    ///< of those, what this host owns
  std::uint64_t at_home = 0;  ///< names that this host keeps the record of
  /// Losses of several hosts at once, after which names that nobody has used since may be half
  /// done.
  std::uint64_t in_doubt = 0;
  std::string etcd_trouble;  ///< empty: none
  std::vector<member_status> members;
  agent_counts counts;
};

[[nodiscard]] std::string json_text_of(const agent_status& what);
/// Nothing if the text is none: the agent may have another version.
[[nodiscard]] std::optional<agent_status> status_from_json(const std::string& text);
/// The text format of Prometheus, for the collector of its node exporter that reads files.
[[nodiscard]] std::string metrics_text_of(const agent_status& what);

}  // namespace lockflight::cluster
