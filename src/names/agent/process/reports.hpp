// The reports of an agent about itself: its status, its metrics, and warnings about other hosts.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "names/agent/host/domain_words.hpp"
#include "names/agent/link/links.hpp"
#include "names/agent/process/journal.hpp"
#include "names/agent/process/known_members.hpp"
#include "names/agent/process/status.hpp"
#include "names/cluster/core/agent.hpp"

namespace lockflight::cluster {

/// The parts of an agent that its reports are about.
struct report_sources {
  const std::string& domain;
  const std::string& host;          ///< this one's name
  const std::string& metrics_file;  ///< empty: none
  const detail::domain_file& file;
  const agent& core;
  const timing& times;
  const domain_words& words;
  const known_members& members;
  const links& others;
  const std::string& etcd_trouble;
  const agent_counts& counts;
  const journal& log;
};

class reports {
 public:
  explicit reports(const report_sources& of) : of_(of) {}

  [[nodiscard]] agent_status status();
  /// Writes the metrics' file, if there is one. A collector sees by its time that the file is old,
  /// if it cannot be written.
  void write_metrics();
  /// Warns once about each other member that has this host's name and answers. A member that does
  /// not answer may be this host itself, from before its domain file was made anew.
  void warn_of_namesakes();

 private:
  void add_members(agent_status& to) const;

  report_sources of_;
  std::uint64_t owned_ = 0;
  std::uint64_t counted_at_ = ~std::uint64_t{0};  // how much had happened when owned_ was counted
  bool has_metrics_ = true;                       // the file could be written the last time
  std::set<member_id> namesakes_;                 // about which the log has a warning
};

}  // namespace lockflight::cluster
