// The locks of an MPI window: one on each target, exclusive or shared, and one on all of them at
// once, shared. What MPI_Win_lock, MPI_Win_lock_all and their unlocks need.
//
// Any lock of the lock table serves on the targets; a mutex is exclusive also for those who would
// share. lock_all excludes exclusive locks and nothing else, so it is one stay in a room that
// those who lock exclusively do not enter (rooms.hpp): its cost does not grow with the window. The
// paper on MPI passive target synchronization on the SCC (section 4) leaves open how its queue
// locks could offer lock_all; this is an answer for any of them.
//
// Network operations: lock, exclusive: 1 fetch-add and 1 add beyond the target's lock; shared:
// none; lock_all 1 fetch-add, unlock_all 1 add.
#pragma once

#include <stdexcept>

#include "lockflight/lock/concepts.hpp"
#include "lockflight/lock/rooms.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// One participant's way into a window: all of its targets shared, or some of them exclusively.
template <rma::port Port>
class window_door {
 public:
  using cells = typename rooms<Port>::cells;

  window_door(rma::participant<Port>& me, const cells& window)
      : port_(me.port()), rooms_(me, window) {}

  void lock_all() { rooms_.enter(room::second); }
  void unlock_all() { rooms_.leave(room::second); }

  // Once for all exclusive locks that the participant holds: who holds one and wants another must
  // not stand behind a lock_all that waits for it to leave.
  void enter() {
    // A participant may be several threads, one of which is at the port while the others wait.
    while (on_the_way_in_) port_.pause(0);
    if (exclusive_++ > 0) return;
    on_the_way_in_ = true;
    rooms_.enter(room::first);
    on_the_way_in_ = false;
  }
  void leave() {
    if (--exclusive_ == 0) rooms_.leave(room::first);
  }

 private:
  Port& port_;
  rooms<Port> rooms_;
  int exclusive_ = 0;
  bool on_the_way_in_ = false;
};

/// One participant's lock on one target of a window.
template <template <class> class Target, rma::port Port>
class window_lock {
  using target_lock = Target<Port>;

 public:
  /// The home of `target` is the target.
  window_lock(rma::participant<Port>& me, window_door<Port>& door,
              const typename target_lock::cells& target,
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
  window_door<Port>& door_;
  target_lock target_;
};

}  // namespace lockflight::lock
