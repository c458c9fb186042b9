// The options of the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockflight::test {

struct campaign_options {
  int kills = 300;
  int processes = 8;
  std::uint64_t seed = 1;
  double most_wait_s = 2;
  bool users = false;
  bool spaces = false;
  bool removals = false;
  bool images = false;
  bool quiet = false;
  std::vector<std::string> kinds;  ///< the kinds of lock in use; none: all

  /// The numbers of the locks in use.
  [[nodiscard]] std::vector<int> numbers() const;
};

/// Reads the command line. Returns the exit code when the program should end now: 0 after --help,
/// 2 after bad usage.
std::optional<int> read_options(int argc, char** argv, campaign_options& into);

}  // namespace lockflight::test
