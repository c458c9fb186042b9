// The Lock that Python's classes are made of: its acquires and releases, and what it tells.
#pragma once

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
  static void check(const named_lock&) {}
  static bool attempt(named_lock& of) { return of.try_lock(); }
  static bool within(named_lock& of, nanoseconds patience) { return of.try_lock_within(patience); }
  static void wait(named_lock& of) { of.lock(); }
  static void release(named_lock& of) { of.unlock(); }
};
struct with_others {
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

template <class How>
bool acquire(entry& mine, nanoseconds patience, call_in_progress& call) {
  if (!mine.used) [[unlikely]] {  // files may have to be opened and made
    call.give_up_interpreter();
    mine.used = true;
  }
  if (patience == for_ever) return How::wait(*mine.handle), true;
  return patience == 0 ? How::attempt(*mine.handle) : How::within(*mine.handle, patience);
}

struct lock_object {
  std::shared_ptr<const recipe> of;

  lock_object(const domain& in, std::string name, std::string kind, std::string parameters,
              bool raises)
      : of(std::make_shared<const recipe>(
            recipe{in,
                   std::move(name),
                   {.kind = std::move(kind), .parameters = std::move(parameters)},
                   raises})) {
    my_entry(of);  // what is wrong with the name or the kind is said now
  }
  lock_object(const lock_object&) = delete;
  lock_object& operator=(const lock_object&) = delete;
  ~lock_object() {
    if (present_call != nullptr) return;  // the thread's table drops the handle later
    handle_table& mine = my_table();
    if (mine.last == of.get()) mine.last = nullptr;
    mine.entries.erase(of.get());
  }

  template <class How>
  bool take(nanoseconds patience) const {
    entry& mine = my_entry(of);
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
      meanwhile(cancellation& c, named_lock& waits) : by(c) {
        by.set_waiting(&waits);
        ends_acquire = &by;
      }
      ~meanwhile() {
        ends_acquire = nullptr;
        by.set_waiting(nullptr);
      }
      cancellation& by;
    } const ended(cancelled, my_handle(of));
    try {
      return !cancelled.is_cancelled() && take<How>(for_ever);
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::interrupted || !cancelled.is_cancelled()) throw;
      return false;
    }
  }
  template <class How>
  void release() const {
    named_lock& mine = my_handle(of);
    const call_in_progress call(of->name);
    How::release(mine);
  }
  /// At the end of a `with`, which a fork may have left with nothing to release.
  template <class How>
  void leave() const {
    try {
      release<How>();
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::not_held || !was_held_by_parent(of)) throw;
    }
  }

  [[nodiscard]] bool held() const {
    const named_lock* const mine = known_handle(of);
    return mine != nullptr && mine->is_held();
  }
  [[nodiscard]] bool owner_died() const {
    const named_lock* const mine = known_handle(of);
    return mine != nullptr && mine->is_held() && mine->owner_died();
  }
  [[nodiscard]] std::uint64_t token() const {
    const named_lock* const mine = known_handle(of);
    return mine != nullptr ? mine->token() : 0;
  }
  /// Of the domain that this thread's handle uses, else of the Lock's.
  [[nodiscard]] bool still_valid() const {
    const named_lock* const mine = known_handle(of);
    return mine != nullptr && mine->is_held() ? mine->still_valid() : of->in.still_valid();
  }
  /// 0 if this thread does not hold the lock.
  [[nodiscard]] double valid_for() const {
    const named_lock* const mine = known_handle(of);
    return mine != nullptr ? seconds_of(mine->valid_for()) : 0;
  }
  [[nodiscard]] bool lost() const {
    const named_lock* const mine = known_handle(of);
    return mine != nullptr && mine->is_lost();
  }
  [[nodiscard]] bool locked() const {
    if (held()) return true;
    const others_run meanwhile;
    for (const domain_lock& each : of->in.locks()) {
      if (each.name != of->name) continue;
      return std::any_of(each.uses.begin(), each.uses.end(), [](const domain_lock_use& use) {
        return !use.dead && use.what != domain_lock_use::how::waits;
      });
    }
    return false;
  }
};

}  // namespace lockflight::python
