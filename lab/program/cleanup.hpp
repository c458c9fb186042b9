// Removes half-written files and the line of progress when the program is interrupted. The ranks of
// a run need no care, since the system ends them with the program.
#pragma once

#include <signal.h>

#include <string>

namespace lockflight::lab {

/// From here on Ctrl-C, a hang-up, a request to terminate and a closed output pipe remove the
/// temporary files and end the program at once, with 128 + the signal's number.
void clean_up_when_interrupted();

/// Sets whether a progress line is on the terminal; returns the value before.
bool progress_is_shown(bool shown);

/// While this object exists, those signals wait.
class interruptions_held {
 public:
  interruptions_held();
  ~interruptions_held();
  interruptions_held(const interruptions_held&) = delete;
  interruptions_held& operator=(const interruptions_held&) = delete;

 private:
  sigset_t before_;
};

/// A temporary file that a signal removes while this object exists.
class removed_when_interrupted {
 public:
  /// Throws std::length_error past a handful of files at once.
  explicit removed_when_interrupted(const std::string& path);
  ~removed_when_interrupted();
  removed_when_interrupted(const removed_when_interrupted&) = delete;
  removed_when_interrupted& operator=(const removed_when_interrupted&) = delete;

 private:
  std::size_t slot_;
};

}  // namespace lockflight::lab
