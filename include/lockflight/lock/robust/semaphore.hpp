// A semaphore of N units: the steps of its participants, in their order.
//
// The semaphore has N + 1 robust locks, the *queue* and the *units*, and a word `released` that
// each release of a unit changes. A participant that wants a unit takes the queue, and is its
// *head* then: it tries the units, and if none is free it sleeps until `released` or the number of
// deaths changes. A semaphore of named locks (src/names/locks/units_handle.cpp) and the
// checker's (tests/lab/check/semaphore.hpp) run this code.
//
// Source: lockflight.
//
// Invariants:
// S1. At most N hold, each another unit: a holder holds the lock of its unit. This does not depend
//     on the queue, which orders acquires and nothing more.
// S2. The head does not miss a release: it reads `released` before it tries the units, and a
//     release changes the word after it has freed the unit.
// S3. The head does not miss a death: it reads the number of deaths before it tries the units. A
//     holder that dies between its two steps changes nothing in `released`, but is a death. A
//     failing attempt on a unit repairs it.
// S4. A head that dies frees the queue, as any holder of a lock; the next waiter becomes the head.
//     If the head had taken a unit, that becomes free in the same way.
#pragma once

#include <cstdint>

#include "lockflight/rma/cell.hpp"

namespace lockflight::lock {

/// The next step of the head.
enum class head_step : std::uint8_t {
  wait,       ///< there is no unit: it waits for one
  try_again,  ///< there may be a free one
  had,        ///< the participant has a unit
  late,       ///< the time limit is over
  moved,      ///< the semaphore is another one by now
};

/// The numbers of which one changes when a unit becomes free.
struct release_mark {
  rma::word released = 0;
  rma::word deaths = 0;
};

/// The wait of the participant that holds the queue, until it has a unit or cannot wait any longer.
/// A Head has:
///   release_mark mark();
///   bool try_units();                    // takes a free unit, without waiting
///   head_step before_wait();             // `wait`, or another step in its place
///   head_step await_release(release_mark seen);  // until the mark has changed; not `wait`
template <class Head>
[[nodiscard]] head_step wait_as_head(Head& head) {
  while (true) {
    const release_mark seen = head.mark();
    if (head.try_units()) return head_step::had;
    head_step next = head.before_wait();
    if (next == head_step::wait) next = head.await_release(seen);
    if (next != head_step::try_again) return next;
  }
}

/// For a holder of a unit. `Holder` has
///   void free_unit();
///   void note_release();  // changes `released`, and wakes the head
template <class Holder>
void release_unit(Holder& holder) {
  holder.free_unit();
  holder.note_release();
}

}  // namespace lockflight::lock
