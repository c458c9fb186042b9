// The names of a host that no client has used for a while.
//
// The agent goes through all names of its host again and again, some at a time. Each exclusive
// acquire changes the state word, so a name whose words are as they were in the pass before was not
// used exclusively in between. Shared acquires change nothing; that a name is shared now is seen by
// its host lock.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "names/cluster/core/agent_events.hpp"
#include "names/cluster/core/words.hpp"

namespace lockflight::cluster {

class unused_names {
 public:
  explicit unused_names(const timing& times)
      : keep_(times.keep), scan_every_(times.scan_every), next_scan_(keep_ == 0 ? never : 0) {}

  [[nodiscard]] instant next_scan() const { return next_scan_; }
  /// Goes on with the pass, or begins another one. Returns those of the names scanned that the
  /// host owns and that were not used since the pass before.
  [[nodiscard]] std::vector<std::string> scan(const host_words& words);
  [[nodiscard]] bool is_end_of_pass() const { return left_.empty(); }
  /// Says that a scan is over, and when the next one is due. Two passes are at least as far apart
  /// as a name is to be kept.
  void scanned(instant now, bool is_done);

 private:
  static constexpr instant never = std::numeric_limits<instant>::max();

  struct words_seen {
    ownership owned;
    state is;
    bool operator==(const words_seen&) const = default;
  };

  instant keep_;
  instant scan_every_;
  instant next_scan_;
  std::vector<std::string> left_;                       // of this pass
  std::unordered_map<std::string, words_seen> before_;  // as the pass before saw them
  std::unordered_map<std::string, words_seen> seen_;    // in this pass
};

}  // namespace lockflight::cluster
