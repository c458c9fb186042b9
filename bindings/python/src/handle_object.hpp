// The Handle that all locks of Python are: a Mutex, a Semaphore, their shared() and within(), and
// all_of. There is one way to enter and one to leave, and no step of Python is in the middle of
// either: so no exception of a signal handler can leave a lock held that nobody knows of.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "handles.hpp"
#include "lockflight/domain.hpp"
#include "waiting.hpp"

namespace lockflight::python {

/// One lock of a Handle, and how the Handle holds it.
struct part {
  std::shared_ptr<const recipe> of;
  mode as = mode::exclusive;
};

/// Makes a cancellation end the waits of this thread for these locks.
class cancellable {
 public:
  cancellable(cancellation& by, const std::vector<part>& parts);
  ~cancellable();
  cancellable(const cancellable&) = delete;
  cancellable& operator=(const cancellable&) = delete;

 private:
  cancellation& by_;
};

class handle_object {
 public:
  /// Of one lock. What is wrong with its name or its kind is said now.
  explicit handle_object(recipe made);
  /// Of those of other ones, in that order, all together or none. `with` waits for `patience`.
  handle_object(std::vector<part> parts, limit patience)
      : parts_(std::move(parts)), patience_(patience), is_made_of_others_(true) {}
  handle_object(const handle_object&) = delete;
  handle_object& operator=(const handle_object&) = delete;
  ~handle_object();

  [[nodiscard]] const std::vector<part>& parts() const { return parts_; }
  [[nodiscard]] limit patience() const { return patience_; }
  [[nodiscard]] bool is_made_of_others() const { return is_made_of_others_; }

  // A mode in place of `none` replaces that of each lock.

  /// Null: all are held now. Else the lock that was not free in time, and none is held. None is
  /// held either if it throws.
  [[nodiscard]] const recipe* take(limit patience, mode as = mode::none) const;
  /// Releases all that can be, and then throws what was wrong first.
  void release(mode as = mode::none) const;
  /// At the end of a block, which a fork may have left with nothing to release. Throws lost_error
  /// if a lock with raises_on_loss was lost.
  void leave(mode as = mode::none) const;

  // For a task of asyncio, in a thread that holds for it:

  /// As take(), but a task may end it.
  struct outcome {
    bool is_cancelled = false;
    const recipe* late = nullptr;
  };
  [[nodiscard]] outcome take_unless(cancellation& cancelled, limit patience,
                                    const std::vector<std::uint64_t>& loss_numbers) const;
  /// As take(). `loss_numbers` has for each lock the number that is reported when its hold is lost;
  /// 0: none is. `is_over` is asked before each lock.
  [[nodiscard]] const recipe* take_for_task(limit patience,
                                            const std::vector<std::uint64_t>& loss_numbers,
                                            const std::function<bool()>& is_over) const;
  /// True if this thread holds one of the locks already, so that it cannot hold it for another
  /// task.
  [[nodiscard]] bool is_in_use() const;
  /// Frees what this thread holds, as after a death.
  void abandon() const;

  // The holds of this thread. Of several locks: of the first, or what holds for all or any of them.

  [[nodiscard]] bool held() const;
  [[nodiscard]] bool owner_died() const;
  void mark_consistent() const;
  [[nodiscard]] std::uint64_t token() const;
  [[nodiscard]] std::vector<int> units_held() const;
  /// Of a lock that is not held: of its last hold.
  [[nodiscard]] bool lost() const;
  /// Of the domains that this thread's handles use, else of the locks'.
  [[nodiscard]] bool still_valid() const;
  /// 0 if this thread does not hold.
  [[nodiscard]] double valid_for() const;
  /// True if any thread holds one of the locks, or all units of a semaphore are held.
  [[nodiscard]] bool locked() const;

 private:
  std::vector<part> parts_;
  limit patience_ = limit::for_ever();
  bool is_made_of_others_ = false;
};

}  // namespace lockflight::python
