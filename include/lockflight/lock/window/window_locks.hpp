// The locks of an MPI window: one on each target, exclusive or shared, and one on all of them at
// once, shared. What MPI_Win_lock, MPI_Win_lock_all and their unlocks need.
//
// Any lock of the lock table serves on the targets; a mutex is exclusive also for those who would
// share. lock_all excludes exclusive locks and nothing else, so those who lock exclusively pass a
// door, and whoever locks all shuts it; its cost does not grow with the window. The paper on MPI
// passive target synchronization on the SCC (section 4) leaves open how its queue locks could offer
// lock_all; a door is an answer for any of them. There are two: window_rooms, here, and
// window_global (window/window_global.hpp).
//
// Network operations beyond the target's lock: shared none; exclusive what the door costs, with
// window_rooms 1 fetch-add and 1 add; lock_all 1 fetch-add, unlock_all 1 add.
#pragma once

#include <stdexcept>

#include "lockflight/lock/concepts.hpp"
#include "lockflight/lock/window/group_exclusion.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// Those who lock all are in one room, those who lock exclusively in the other: any number of
/// either.
template <rma::port Port>
class window_rooms {
 public:
  static constexpr const char* name = "rooms";
  using port = Port;
  using cells = typename group_exclusion<Port>::cells;

  window_rooms(rma::participant<Port>& me, const cells& window) : rooms_(me, window) {}

  void lock_all() { rooms_.enter(room::second); }
  void unlock_all() { rooms_.leave(room::second); }
  void lock_one() { rooms_.enter(room::first); }
  void unlock_one() { rooms_.leave(room::first); }

 private:
  group_exclusion<Port> rooms_;
};

/// One participant's way into a window: all of its targets shared, or some of them exclusively.
template <class Way>
class window_door {
  using Port = typename Way::port;

 public:
  using cells = typename Way::cells;

  window_door(rma::participant<Port>& me, const cells& window)
      : port_(me.port()), way_(me, window) {}

  void lock_all() { way_.lock_all(); }
  void unlock_all() { way_.unlock_all(); }

  // Once for all exclusive locks that the participant holds: who holds one and wants another must
  // not stand behind a lock_all that waits for it to leave.

  /// Throws std::length_error, and nobody is in, when the participant has no queue node left.
  void enter() {
    // A participant may be several threads, one of which is at the port while the others wait.
    while (somebody_passes_) port_.pause(0);
    if (exclusive_ == 0) {
      const passage now(somebody_passes_);
      way_.lock_one();
    }
    ++exclusive_;
  }
  void leave() {
    rma::ensure(exclusive_ > 0, "whoever leaves has entered");
    if (--exclusive_ > 0) return;
    const passage now(somebody_passes_);
    way_.unlock_one();
  }

 private:
  struct passage {
    explicit passage(bool& under_way) : under_way_(under_way) { under_way_ = true; }
    ~passage() { under_way_ = false; }
    passage(const passage&) = delete;
    passage& operator=(const passage&) = delete;
    bool& under_way_;
  };

  Port& port_;
  Way way_;
  int exclusive_ = 0;
  bool somebody_passes_ = false;
};

/// One participant's lock on one target of a window.
template <template <class> class Target, class Door, rma::port Port>
class window_lock {
  using target_lock = Target<Port>;

 public:
  /// The home of `target` is the target.
  window_lock(rma::participant<Port>& me, Door& door, const typename target_lock::cells& target,
              const typename target_lock::parameters& set)
      : door_(door), target_(me, target, set) {}

  /// Throws std::length_error, and nothing is locked, when the participant has no queue node left.
  void lock() {
    door_.enter();
    try {
      target_.lock();
    } catch (const std::length_error&) {
      door_.leave();
      throw;
    }
  }
  void unlock() {
    target_.unlock();
    door_.leave();
  }

  void lock_shared() {
    if constexpr (shared<target_lock>)
      target_.lock_shared();
    else
      target_.lock();
  }
  void unlock_shared() {
    if constexpr (shared<target_lock>)
      target_.unlock_shared();
    else
      target_.unlock();
  }

 private:
  Door& door_;
  target_lock target_;
};

}  // namespace lockflight::lock
