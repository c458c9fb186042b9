// Profiles: parameters of locks that `lockflight tune` has found for a workload on a machine.
// examples/tuned.cpp uses one, and docs/tuning.md describes the format. Programs that use this
// header link lockflight::profile.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "lockflight/lock/parameters.hpp"

namespace lockflight {

/// Thrown if a profile cannot be used. what() is one line with the file, the line number, the key,
/// its value and what is accepted.
struct bad_profile : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// The parameters of some locks, and the runs for which they were found.
///
/// Every rank must have the same profile, because some parameters determine where the words of a
/// lock lie. Read it before the ranks start, or read it on one rank and send its text() to the
/// others.
class profile {
 public:
  /// The runs with which the values were found. A string that a file omits is empty, and a number
  /// is 0.
  struct origin {
    std::string fabric = {};
    std::string machine = {};  ///< the simulated machine
    std::string levels = {};
    std::string workload = {};
    std::string objective = {};
    int procs = 0;
    double writers = 0;
    double gain = 0;  ///< how many times as good as the defaults the values were
  };

  struct entry {
    origin found;
    lock::parameter_values parameters;  ///< parameters not named have their defaults
  };

  /// An empty profile, with which all locks have their defaults.
  profile() = default;
  explicit profile(std::map<std::string, entry> locks) : locks_(std::move(locks)) {}

  /// Reads a file. Throws bad_profile.
  [[nodiscard]] static profile read(const std::string& path);
  /// The same for the text of a file; `path` is used in errors only.
  [[nodiscard]] static profile parse(std::string_view text, const std::string& path);
  /// The file that the environment variable LOCKFLIGHT_PROFILE names; an empty profile if it is not
  /// set. Throws bad_profile.
  [[nodiscard]] static profile from_environment();

  /// All entries, by the names of the locks.
  [[nodiscard]] const std::map<std::string, entry>& locks() const { return locks_; }

  /// The values for a lock. The result is empty if the profile does not name the lock.
  [[nodiscard]] const lock::parameter_values& values_of(std::string_view lock) const;

  /// The parameters of a lock: the values of the profile, and the defaults for all others.
  /// `lockflight::shared_mutex mine(me, tuned.parameters_of<lockflight::shared_mutex<Port>>());`
  template <class Lock>
  [[nodiscard]] typename Lock::parameters parameters_of() const {
    return lock::with_values(typename Lock::parameters{}, values_of(Lock::about.name));
  }

  /// The profile as the text of a file.
  [[nodiscard]] std::string text() const;

 private:
  std::map<std::string, entry> locks_;
};

}  // namespace lockflight
