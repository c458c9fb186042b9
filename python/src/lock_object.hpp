// The Lock and the Units that Python's classes are made of: acquires and releases, and what they
// tell.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "errors.hpp"
#include "handles.hpp"
#include "seconds.hpp"
#include "waiting.hpp"

namespace lockflight::python {

using nanoseconds = std::uint64_t;
constexpr nanoseconds for_ever = UINT64_MAX;

struct exclusively {
  static constexpr bool is_exclusive = true;
  static void check(const named_lock&) {}
  static bool attempt(named_lock& of) { return of.try_lock(); }
  static bool within(named_lock& of, nanoseconds patience) { return of.try_lock_within(patience); }
  static void wait(named_lock& of) { of.lock(); }
  static void release(named_lock& of) { of.unlock(); }
};
struct with_others {
  static constexpr bool is_exclusive = false;
  static void check(const named_lock& of) {
    if (!of.can_share())
      throw domain_error(domain_error::reason::invalid,
                         "lock '" + of.name() +
                             "': readers do not share it (accepted: a kind with readers, such as "
                             "flight-rw)");
  }
  static bool attempt(named_lock& of) { return of.try_lock_shared(); }
  static bool within(named_lock& of, nanoseconds patience) {
    return of.try_lock_shared_within(patience);
  }
  static void wait(named_lock& of) { of.lock_shared(); }
  static void release(named_lock& of) { of.unlock_shared(); }
};

/// Of a semaphore.
struct of_units {
  static constexpr bool is_exclusive = false;
  static void check(const named_semaphore&) {}
  static bool attempt(named_semaphore& of) { return of.try_acquire(); }
  static bool within(named_semaphore& of, nanoseconds patience) {
    return of.try_acquire_within(patience);
  }
  static void wait(named_semaphore& of) { of.acquire(); }
  static void release(named_semaphore& of) { of.release(); }
};

template <class How, class Handle>
bool acquire(entry<Handle>& mine, nanoseconds patience, call_in_progress& call) {
  if (!mine.used) [[unlikely]] {  // files may have to be opened and made
    call.give_up_interpreter();
    mine.used = true;
  }
  if (patience == for_ever) return How::wait(*mine.handle), true;
  return patience == 0 ? How::attempt(*mine.handle) : How::within(*mine.handle, patience);
}

/// `Handle` is that of each thread: a named_lock or a named_semaphore.
template <class Handle>
struct held_object {
  using handle = Handle;
  std::shared_ptr<const recipe> of;

  explicit held_object(recipe made) : of(std::make_shared<const recipe>(std::move(made))) {
    my_entry<Handle>(of);  // what is wrong with the name or the kind is said now
  }
  held_object(const held_object&) = delete;
  held_object& operator=(const held_object&) = delete;
  ~held_object() {
    if (present_call != nullptr) return;  // the thread's table drops the handle later
    handle_table<Handle>& mine = my_table<Handle>();
    if (mine.last == of.get()) mine.last = nullptr;
    mine.entries.erase(of.get());
  }

  template <class How>
  bool take(nanoseconds patience) const {
    entry<Handle>& mine = my_entry<Handle>(of);
    if (of->reentrant) [[unlikely]] {
      if (How::is_exclusive && mine.alone && mine.handle->is_held()) return ++mine.again, true;
      const bool has = take_once<How>(mine, patience);
      if (has) mine.alone = How::is_exclusive;
      return has;
    }
    return take_once<How>(mine, patience);
  }
  /// Not again, also if the lock is reentrant.
  template <class How>
  bool take_once(entry<Handle>& mine, nanoseconds patience) const {
    How::check(*mine.handle);
    {
      call_in_progress call(of->name);
      if (!acquire<How>(mine, patience, call)) return false;
    }
    if (of->raises && mine.handle->owner_died()) {
      release<How>();  // an acquire that raises does not hold the lock
      refuse(owner_died_type,
             "lock '" + of->name +
                 "': a holder died, and what the lock guards may be half written (accepted: a Lock "
                 "with on_owner_died='tell', and mark_consistent)");
    }
    return true;
  }
  /// For a task: false if it was cancelled before.
  template <class How>
  bool take_unless(cancellation& cancelled) const {
    struct meanwhile {
      meanwhile(cancellation& c, Handle& waits) : by(c) {
        by.set_waiting([&waits] { waits.ask_now(); });
        ends_acquire = &by;
      }
      ~meanwhile() {
        ends_acquire = nullptr;
        by.set_waiting(nullptr);
      }
      cancellation& by;
    } const ended(cancelled, my_handle<Handle>(of));
    try {
      return !cancelled.is_cancelled() && take_once<How>(my_entry<Handle>(of), for_ever);
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::interrupted || !cancelled.is_cancelled()) throw;
      return false;
    }
  }
  /// For a task: whether this thread has it now, without waiting. None if this thread holds the
  /// lock already, so that another one has to try.
  template <class How>
  nanobind::object attempt() const {
    entry<Handle>& mine = my_entry<Handle>(of);
    try {
      if (!mine.handle->is_held()) return nanobind::bool_(take_once<How>(mine, 0));
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::held) throw;  // by another object of the name
    }
    return nanobind::none();
  }
  template <class How>
  void release() const {
    entry<Handle>& mine = my_entry<Handle>(of);
    if (How::is_exclusive && mine.again > 0) [[unlikely]] {
      --mine.again;
      return;
    }
    try {
      const call_in_progress call(of->name);
      How::release(*mine.handle);
    } catch (const domain_error& e) {
      if (e.why == domain_error::reason::not_held) refuse_release_elsewhere();
      throw;
    }
  }
  /// Each thread has a handle of its own, so the library does not know that another one holds.
  void refuse_release_elsewhere() const {
    const auto refused = [this](const char* by) {
      return domain_error(domain_error::reason::not_held,
                          "release of lock '" + of->name + "', which " + by);
    };
    if (is_held_by_parent<Handle>(of))
      throw refused(
          "the parent of this process held when it forked (accepted: the parent releases it)");
    const auto uses = [this] {
      const others_run meanwhile;
      return of->in.uses_of(of->name);
    }();
    for (const domain_use_elsewhere& use : uses)
      if (use.host.empty() && !use.has_foreign_pid && use.pid == getpid() &&
          use.what != domain_lock_use::how::waits)
        throw refused(
            "another thread of this process holds (accepted: the thread that acquired releases "
            "it)");
  }
  /// At the end of a `with`, which a fork may have left with nothing to release.
  template <class How>
  void leave() const {
    try {
      release<How>();
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::not_held || !was_held_by_parent<Handle>(of)) throw;
    }
  }

  [[nodiscard]] bool held() const {
    const Handle* const mine = known_handle<Handle>(of);
    return mine != nullptr && mine->is_held();
  }
  [[nodiscard]] bool owner_died() const {
    const Handle* const mine = known_handle<Handle>(of);
    return mine != nullptr && mine->is_held() && mine->owner_died();
  }
  [[nodiscard]] std::uint64_t token() const {
    const Handle* const mine = known_handle<Handle>(of);
    return mine != nullptr ? mine->token() : 0;
  }
  /// Of the domain that this thread's handle uses, else of the Lock's.
  [[nodiscard]] bool still_valid() const {
    const Handle* const mine = known_handle<Handle>(of);
    return mine != nullptr && mine->is_held() ? mine->still_valid() : of->in.still_valid();
  }
  /// 0 if this thread does not hold the lock.
  [[nodiscard]] double valid_for() const {
    const Handle* const mine = known_handle<Handle>(of);
    return mine != nullptr ? seconds_of(mine->valid_for()) : 0;
  }
  [[nodiscard]] bool lost() const {
    const Handle* const mine = known_handle<Handle>(of);
    return mine != nullptr && mine->is_lost();
  }
  /// Whether any thread holds the lock, or all units of the semaphore are held.
  [[nodiscard]] bool locked() const {
    if (of->units == 0 && held()) return true;
    const others_run meanwhile;
    for (const domain_lock& each : of->in.locks()) {
      if (each.name != of->name) continue;
      const auto holders =
          std::count_if(each.uses.begin(), each.uses.end(), [](const domain_lock_use& use) {
            return !use.dead && use.what != domain_lock_use::how::waits;
          });
      return holders >= std::max(1, of->units);
    }
    return false;
  }
};
using lock_object = held_object<named_lock>;
using units_object = held_object<named_semaphore>;

}  // namespace lockflight::python
