// The note of `lockflight run --every`: until when the work of a name counts as done
// (named_handle::done_until). In a cluster's domain etcd has it.
//
// Invariant of the run: the holder of the lock writes the note before the command starts, and takes
// it back only if the command has not begun. So a command runs at most once in a period, also if
// its run is killed. With --success the holder writes the note when the command has succeeded. So
// at most one command succeeds in a period, and one at a time runs.
#pragma once

#include <cstdint>

#include "cli/periods.hpp"
#include "lockflight/named_control.hpp"

namespace lockflight::cli {

/// The handle is that of the name, and each call waits for etcd for the limit at most. The calls
/// throw domain_error, as those of named_control.
class period_note {
 public:
  /// A note for periods of so many seconds.
  explicit period_note(wall_seconds length) : length_(length) {}

  enum class answer : std::uint8_t {
    open,  ///< the work of the present period is not done; after write(): it is noted
    done,  ///< the work is done, or that of a later period, since clocks may go back
    none,  ///< etcd has not answered in time
  };
  [[nodiscard]] answer read(named_handle& of, limit patience);
  /// Notes the present period for the holder, unless it is done.
  [[nodiscard]] answer write(named_handle& of, limit patience);
  /// The work begins now, and is that of the present period.
  void begin_work() { period_end_ = end_of_present_period(length_); }
  /// Notes, for the holder, the period in which the work began. False if etcd has not
  /// answered in time.
  [[nodiscard]] bool write_after_success(named_handle& of, limit patience) {
    return named_control(of).set_done_until(period_end_, patience);
  }
  /// The end of the period that this run has noted, or found open.
  [[nodiscard]] wall_seconds period_end() const { return period_end_; }
  /// False if the period that was noted was over when etcd had answered.
  [[nodiscard]] bool is_of_present_period() const {
    return end_of_present_period(length_) == period_end_;
  }
  /// Restores the note as it was before write(), if need be, for a command that has not begun.
  /// False if etcd has not answered in time, so that the note may stand.
  [[nodiscard]] bool take_back(named_handle& of, limit patience);
  /// The same for a run that ends, also if a signal is pending. False if the note may stand.
  [[nodiscard]] bool take_back_at_end(named_handle& of, limit left);
  /// True if a call has thrown this because the lock is lost, and a later holder has written the
  /// note. Then there is nothing to take back.
  [[nodiscard]] bool leave_if_lost(const named_handle& of, const domain_error& thrown);

  /// The note as it was before this run wrote it.
  [[nodiscard]] wall_seconds done_until() const { return done_until_; }
  [[nodiscard]] bool is_after_present_period() const { return done_until_ > period_end_; }

 private:
  wall_seconds length_;
  wall_seconds period_end_ = 0;  // the end of the period that was looked up last
  wall_seconds done_until_ = 0;
  bool may_be_written_ = false;  // by this run, which has not taken it back
};

}  // namespace lockflight::cli
