// The object behind every handle of a name: one lock (one_lock.hpp), several (several_locks.cpp),
// or a semaphore (units_handle.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lockflight/domain.hpp"
#include "lockflight/mode.hpp"

namespace lockflight::detail {

/// named_handle and named_control describe these calls.
class handle {
 public:
  handle() = default;
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  virtual ~handle() = default;

  [[nodiscard]] virtual bool acquire(mode as, limit patience) = 0;
  /// Releases. `none` stands for the mode in which the handle holds.
  virtual void release(mode as) = 0;
  /// Throws domain_error (not_held, wrong_thread) unless release() can do its work.
  virtual void check_held(mode as) const = 0;

  [[nodiscard]] virtual mode held() const = 0;
  [[nodiscard]] virtual bool is_held_by_parent() const = 0;
  [[nodiscard]] virtual bool can_share() const { return false; }
  [[nodiscard]] virtual const std::vector<std::string>& names() const = 0;
  [[nodiscard]] virtual const std::string& awaited() const { return names().front(); }
  [[nodiscard]] virtual int units() const { return 0; }
  [[nodiscard]] virtual int unit() const { return -1; }
  [[nodiscard]] virtual std::vector<int> units_held() const { return {}; }
  [[nodiscard]] virtual std::vector<std::uint64_t> tokens() const = 0;
  [[nodiscard]] virtual bool owner_died() const = 0;
  virtual void mark_consistent() = 0;
  [[nodiscard]] virtual bool still_valid() const = 0;
  /// still_valid(), and the domain's file was not overwritten.
  [[nodiscard]] virtual bool is_intact() const = 0;
  /// For how long the host is certainly alone, in nanoseconds; UINT64_MAX: without limit.
  [[nodiscard]] virtual std::uint64_t alone_for() const = 0;
  [[nodiscard]] virtual hold_ending ending() const = 0;
  /// The sooner of the two. After a loss was told, the file may have no memory any more.
  [[nodiscard]] std::uint64_t valid_for() const {
    const std::uint64_t alone = alone_for();
    if (alone == 0) return 0;
    const hold_ending end = ending();
    return end.why == end_reason::none ? alone : std::min(alone, nanoseconds_of(end.in));
  }
  virtual void end_after(std::uint64_t nanoseconds) = 0;
  /// Has the holder count as one of `lockflight hold`: others release its hold by that token, and
  /// see the note.
  virtual void keep(std::uint64_t token, const std::string& note) = 0;
  /// Of the hold of this thread, which is watched from now on. Throws domain_error (not_held,
  /// wrong_thread, system).
  [[nodiscard]] virtual std::stop_token loss() = 0;
  /// For a holder: releases as its death would.
  virtual void abandon() = 0;
  /// Nothing, or false, if etcd did not answer in time.
  [[nodiscard]] virtual std::optional<std::uint64_t> done_until(limit patience);
  [[nodiscard]] virtual bool set_done_until(std::uint64_t seconds, limit patience);
  /// named_control::set_priority().
  virtual void set_priority(int /*priority*/) {}
  /// named_handle::publish(), or withdraw() without a value. False if etcd did not answer in time.
  [[nodiscard]] virtual bool publish(const std::optional<std::string_view>& bytes, lasts until,
                                     limit patience);
  /// Nothing if etcd did not answer in time.
  [[nodiscard]] virtual std::optional<published_value> published(limit patience);
  [[nodiscard]] virtual published_value await_published(const published_value& seen,
                                                        limit patience);
  /// named_control::missing_answer().
  [[nodiscard]] virtual std::string missing_answer() const { return ""; }

  virtual void interrupt_with(const std::function<bool()>& is_interrupted) = 0;
  virtual void ask_now() = 0;
  /// The process whose end is awaited beside ours; 0: none.
  virtual void extend_to(int pid) = 0;
  virtual void extend_to_this_process() noexcept = 0;
  virtual void finish() noexcept = 0;
  /// named_control::guard_nothing_yet(), and its end.
  virtual void guard_nothing(bool yet) = 0;
};

/// Throws domain_error (invalid) for a name that no lock can have, and for a kind or parameters
/// that do not exist.
[[nodiscard]] std::unique_ptr<handle> handle_of_lock(const std::shared_ptr<domain_file>& file,
                                                     std::string_view name,
                                                     const named_lock_options& what);
[[nodiscard]] std::unique_ptr<handle> handle_of_several(const std::shared_ptr<domain_file>& file,
                                                        std::vector<std::string> names);
[[nodiscard]] std::unique_ptr<handle> handle_of_semaphore(const std::shared_ptr<domain_file>& file,
                                                          std::string_view name, const units& what);

}  // namespace lockflight::detail
