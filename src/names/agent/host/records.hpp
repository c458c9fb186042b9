// The records of the names whose home a host is or was (docs/cluster.md, "The home"), and the
// notes about those whose home's witness it is or was, in a file beside the domain file. The agent
// alone reads and writes it. It outlives the agent, and not the machine: both files are in memory.
//
// The file is a log: each line is the newest record of a name, or the newest note about it, or says
// that there is none. A line that an agent did not finish before it ended says nothing; nothing
// that follows from it has left the host.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "names/cluster/core/words.hpp"

namespace lockflight::cluster {

class records {
 public:
  /// Reads the file, or makes it. Throws std::runtime_error.
  explicit records(std::string path);

  [[nodiscard]] std::optional<record> find(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] std::size_t count() const { return all_.size(); }
  /// Written when this returns. Throws std::runtime_error, and then the agent must end: what
  /// follows from the record must not leave.
  void store(const std::string& name, const record& what);
  void erase(const std::string& name);

  [[nodiscard]] std::optional<witness_note> find_witness_note(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> witnessed_names() const;
  /// As store().
  void store_witness_note(const std::string& name, const witness_note& what);
  void erase_witness_note(const std::string& name);

 private:
  void read();
  void take(const nlohmann::json& line);
  void append(const std::string& line);
  void shorten_if_long();

  std::string path_;
  descriptor file_;
  std::size_t lines_ = 0;
  std::map<std::string, record> all_;
  std::map<std::string, witness_note> witness_notes_;
};

}  // namespace lockflight::cluster
