// A window's own lock that is one reader-writer lock: lock_all reads it, an exclusive lock on a
// target writes it. It is one of the two ways of window/window_locks.hpp.
//
// Source: "FX100 MPI RMA lock synchronization" (section 4.3): one global mcs-rw-rp for the window,
// where foMPI has a counter that is polled.
//
// Difference from the text: the paper has no locks on targets, so a shared lock on one target
// reads the global lock too. A process that shares one target and then locks another exclusively,
// which MPI allows, would wait for itself there. Here a shared lock on a target takes that target's
// lock only, and an exclusive lock on a target takes both.
//
// Order: lock_all enters as long as no process holds a target exclusively. Exclusive locks are
// first come, first served, one process at a time whatever the targets, as in the paper; with
// window_groups exclusive locks on different targets do not meet.
// Fairness: none for exclusive locks, which lock_all overtakes for ever.
// Deadlock: a process that holds a target exclusively must not wait for another process that locks
// any target exclusively, though MPI allows it.
//
// Cost in network operations beyond the target's lock; waiting is local:
// | lock_all       | 1 fetch-add                 |
// | unlock_all     | 1 fetch-add                 |
// | exclusive lock | 1 swap, 1 compare-swap      |
// | its unlock     | 1 fetch-add, 1 compare-swap |
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
