// The loss of a hold reaches the program (named_handle::loss()). A thread of this process watches
// the holds that asked for it. It starts with the first such hold, and sleeps until one of three
// things happens:
//
// - A hold's moment has come (cluster::told_at): a tenth of the time to live before the deadline of
//   its host, by CLOCK_BOOTTIME. The agent moves the deadline on without a word, so the thread
//   looks again at the moment that it knew, a little more than once in each time to live.
// - The kernel says (inotify) that a domain file was removed, replaced or written to by something
//   else than its mapping; the agent changes a time of the file when it sets the deadline back.
// - A new hold's moment comes before all others.
//
// Invariant: the thread has set its timer to no later moment than that of any hold in the list.
//
// Where the kernel gives no inotify watch (fs.inotify.max_user_instances), the thread looks at its
// holds every `looks_each` instead.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>

#include "names/file/file.hpp"

namespace lockflight::detail {

/// A hold that is watched, until this object ends.
class hold_watch {
 public:
  /// Throws domain_error (system) if there is no descriptor or no thread for it.
  explicit hold_watch(const std::shared_ptr<domain_file>& file);
  ~hold_watch();
  hold_watch(const hold_watch&) = delete;
  hold_watch& operator=(const hold_watch&) = delete;

  /// It is stopped when the hold is lost, and never after the watch has ended.
  [[nodiscard]] std::stop_token token() const;
  /// True if the loss was told. It stays so.
  [[nodiscard]] bool is_told() const { return token().stop_requested(); }
  /// Tells it at once, on this thread.
  void tell();

  struct hold;

 private:
  std::shared_ptr<hold> hold_;
  std::uint64_t image_;  // of the process that watches: a child has a copy that nobody watches
};

}  // namespace lockflight::detail
