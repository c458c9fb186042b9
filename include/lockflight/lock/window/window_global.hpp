// One reader-writer lock for a whole window, beside the locks of its targets: who locks all reads,
// who locks a target exclusively writes. A door for window/window_locks.hpp.
//
// Source: "FX100 MPI RMA lock synchronization" (section 4.3): one global mcs-rw-rp for the window,
// where foMPI has a counter that is polled.
//
// What differs from the text: the paper has no locks on targets, so that sharing one target is
// reading the global lock too. Then a process that shares one target and wants another exclusively
// waits for itself, which MPI allows it to do. Here who shares a target takes that target's lock
// only, and who locks one exclusively takes both.
//
// Order: who locks all enters as long as nobody holds a target exclusively. Exclusive locks are
// first come, first served, one process at a time whatever the targets, as in the paper; with
// window_rooms those of different targets do not meet.
// Fairness: none for exclusive locks, which those who lock all overtake for ever.
// Deadlock: a process that holds a target exclusively must not wait for another that locks any
// target exclusively, though MPI would let it.
// Network operations: lock_all 1 fetch-add, unlock_all 1 fetch-add; an exclusive lock beyond the
// target's 1 swap and 1 compare-swap, then 1 fetch-add and 1 compare-swap. Waiting is local.
#pragma once

#include "lockflight/lock/mcs_rw_rp.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

template <rma::port Port>
class window_global {
  using whole = mcs_rw_rp<Port>;

 public:
  static constexpr const char* name = "global";
  using port = Port;

  struct cells {
    typename whole::cells window;

    static cells place(rma::layout& in, const rma::topology& machine, rma::rank_t home) {
      return {whole::cells::place(in, machine, {}, home)};
    }
  };

  window_global(rma::participant<Port>& me, const cells& where) : whole_(me, where.window) {}

  void lock_all() { whole_.lock_shared(); }
  void unlock_all() { whole_.unlock_shared(); }
  void lock_one() { whole_.lock(); }
  void unlock_one() { whole_.unlock(); }

 private:
  whole whole_;
};

}  // namespace lockflight::lock
