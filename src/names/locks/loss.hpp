// The loss of a hold reaches the program (named_handle::loss()). A thread of this process watches
// the holds that asked for it. It starts with the first such hold, and sleeps until one of three
// things happens:
//
// - The loss time of a hold has come (cluster::loss_time): a tenth of the time to live before the
//   deadline of its host, by CLOCK_BOOTTIME. The agent renews the deadline without a notification,
//   so the thread looks again at the time that it knew, a little more than once in each time to
//   live.
// - The kernel says (inotify) that a domain file was removed, replaced or written to by something
//   else than its mapping, or that its folder has a new file; the agent changes a time of the file
//   when it sets the deadline back.
// - A new hold has an earlier loss time than all others.
//
// The end of a hold (names/life/hold_end.hpp) is a loss time as well. Another process that sets one
// changes a time of the file, as the agent does.
//
// Invariants:
// - The timer is set to no later moment than the loss time of any hold in the list.
// - A function that is called for a hold does not begin after the end of its hold_watch, which
// waits
//   for one that runs.
// - The thread uses no descriptor that is not its own any more: a program may have closed it, and
//   have a file of its own under that number.
//
// Where the kernel gives no inotify watch (fs.inotify.max_user_instances, or a file that the
// process may not open by its path any more), the thread looks at its holds every `poll_period`
// instead.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "names/file/file.hpp"
#include "names/life/hold_end.hpp"

namespace lockflight::detail {

/// False if the file was removed or replaced, or is no domain any more. A process that lacks a
/// descriptor to look at it cannot say so. Some system calls.
[[nodiscard]] bool is_in_place(const domain_file& file);

/// Watches a hold while this object exists.
class hold_watch {
 public:
  /// Of the hold that has that name in that page of the file. Throws domain_error (system) if there
  /// is no descriptor or no thread for it.
  hold_watch(const std::shared_ptr<domain_file>& file, const domain_slot_page& slot,
             hold_name name);
  /// Waits for a function that is called for this hold now, unless this thread runs it.
  ~hold_watch();
  hold_watch(const hold_watch&) = delete;
  hold_watch& operator=(const hold_watch&) = delete;

  /// A token that is stopped when the hold is lost, and never after the watch has ended.
  [[nodiscard]] std::stop_token token() const;
  /// True if the loss was told. It stays so.
  [[nodiscard]] bool is_told() const { return token().stop_requested(); }
  /// Tells it at once, on this thread.
  void tell();
  /// The thread looks at once: the end of the hold is nearer than before.
  void look_now();

  struct hold;

 private:
  std::shared_ptr<hold> hold_;
  std::uint64_t image_;  // of the process that watches: a child has a copy that nobody watches
};

/// A token of several holds, which is stopped when one of them is lost.
class joint_loss {
 public:
  explicit joint_loss(const std::vector<std::stop_token>& of);
  ~joint_loss();
  joint_loss(const joint_loss&) = delete;
  joint_loss& operator=(const joint_loss&) = delete;
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

 private:
  using callback = std::stop_callback<std::function<void()>>;
  std::stop_source source_;
  std::vector<std::unique_ptr<callback>> each_;
  std::uint64_t image_;
};

}  // namespace lockflight::detail
