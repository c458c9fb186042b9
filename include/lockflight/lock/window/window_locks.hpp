// The locks of an MPI window: one lock on each target, exclusive or shared, and one on the whole
// window, shared. MPI_Win_lock, MPI_Win_lock_all and their unlocks need these.
//
// Source: "MPI passive target synchronization on a non-cache-coherent many-core" (section 4) leaves
// open how its queue locks could offer lock_all. Here any lock serves on the targets; a mutex is
// exclusive for shared locks too. Beside them lies the window's own lock: an exclusive lock on a
// target takes it and lock_all excludes it, so the cost of lock_all does not grow with the window,
// but for the first one after a bias.
//
// There are two ways to make the window's own lock: window_groups here, and window_global
// (window/window_global.hpp).
//
// Invariant: a participant takes the window's own lock once for all exclusive locks that it holds.
// A participant that holds one target and wants another must not queue behind a lock_all that waits
// for it to leave.
//
// Cost in network operations beyond the target's lock, with window_groups:
// | shared lock, its unlock | none                                                        |
// | exclusive lock          | 1 fetch-add; none while there is a bias (biased_groups.hpp) |
// | its unlock              | 1 add; none                                                 |
// | lock_all                | 1 fetch-add; the first after a bias also 1 load for each    |
// |                         | participant                                                 |
// | unlock_all              | 1 add                                                       |
#pragma once

#include <stdexcept>

#include "lockflight/lock/concepts.hpp"
#include "lockflight/lock/window/biased_groups.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// Group mutual exclusion of exclusive locks and lock_all: any number of one of the two. On one
/// node it favours exclusive locks.
template <rma::port Port, std::uint64_t Patience, int EntriesUntilBias = 0>
class window_groups_of {
  using two_groups = biased_groups<Port, Patience, EntriesUntilBias>;

 public:
  static constexpr const char* name = "groups";
  using port = Port;
  using cells = typename two_groups::cells;

  window_groups_of(rma::participant<Port>& me, const cells& window) : groups_(me, window) {}

  void lock_all() { groups_.enter_second(); }
  void unlock_all() { groups_.leave_second(); }
  void lock_one() { groups_.enter_first(); }
  void unlock_one() { groups_.leave_first(); }

 private:
  two_groups groups_;
};
template <rma::port Port>
using window_groups = window_groups_of<Port, usual_patience_ns>;

/// A participant's handle of the window's own lock: all targets shared, or some of them
/// exclusively.
template <class Way>
class whole_window {
  using Port = typename Way::port;

 public:
  using cells = typename Way::cells;

  whole_window(rma::participant<Port>& me, const cells& window)
      : port_(me.port()), way_(me, window) {}

  void lock_all() { way_.lock_all(); }
  void unlock_all() { way_.unlock_all(); }

  /// Before an exclusive lock on a target. Throws std::length_error, and nothing is locked, when
  /// the participant has no queue node left.
  void enter() {
    // A participant may have several threads; one of them uses the port while the others wait.
    while (under_way_) port_.pause(0);
    if (exclusive_ == 0) {
      const operation now(under_way_);
      way_.lock_one();
    }
    ++exclusive_;
  }
  /// After an exclusive lock on a target was released.
  void leave() {
    rma::ensure(exclusive_ > 0, "whoever leaves has entered");
    if (--exclusive_ > 0) return;
    const operation now(under_way_);
    way_.unlock_one();
  }

 private:
  struct operation {
    explicit operation(bool& under_way) : under_way_(under_way) { under_way_ = true; }
    ~operation() { under_way_ = false; }
    operation(const operation&) = delete;
    operation& operator=(const operation&) = delete;
    bool& under_way_;
  };

  Port& port_;
  Way way_;
  int exclusive_ = 0;
  bool under_way_ = false;  // a thread of the participant locks or unlocks
};

/// A participant's handle of the lock on one target of a window.
template <template <class> class Target, class Window, rma::port Port>
class window_lock {
  using target_lock = Target<Port>;

 public:
  /// The home of `target` is the target.
  window_lock(rma::participant<Port>& me, Window& window, const typename target_lock::cells& target,
              const typename target_lock::parameters& set)
      : window_(window), target_(me, target, set) {}

  /// Throws std::length_error, and nothing is locked, when the participant has no queue node left.
  void lock() {
    window_.enter();
    try {
      target_.lock();
    } catch (const std::length_error&) {
      window_.leave();
      throw;
    }
  }
  void unlock() {
    target_.unlock();
    window_.leave();
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
  Window& window_;
  target_lock target_;
};

}  // namespace lockflight::lock
