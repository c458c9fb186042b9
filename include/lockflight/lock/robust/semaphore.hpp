// A semaphore of N units: the steps of its participants, in their order.
//
// The semaphore has N + 1 robust locks, the *queue* and the *units*, and a word `released` that
// each release of units changes. A participant wants one unit or several. It takes the queue, and
// is its *head* then: it takes units that are free, until it has as many as it wants, and while too
// few are free it keeps those and sleeps until `released` or the number of deaths changes. A
// semaphore of named locks (src/names/locks/units_handle.cpp) and the checker's
// (tests/lab/check/semaphore.hpp) run this code.
//
// Source: lockflight.
//
// Invariants:
// S1. At most N hold, each another unit: a holder holds the lock of its unit. This does not depend
//     on the queue, which orders acquires and nothing more.
// S2. The head does not miss a release: it reads `released` before it tries the units, and a
//     release changes the word after it has freed the unit. Units that are new count as released.
// S3. The head does not miss a death: it reads the number of deaths before it tries the units. A
//     holder that dies between its two steps changes nothing in `released`, but is a death. A
//     failing attempt on a unit repairs it.
// S4. A head that dies frees the queue, as any holder of a lock; the next waiter becomes the head.
//     The units that the head had taken become free in the same way.
// S5, S6 and S9 are in units_handle.cpp.
// S7. Nobody but the head waits while it has a part of the units that it wants. So two participants
//     never wait for units of each other. A participant that leaves the queue, or is not in it, has
//     all units that it wants, or gives back those that it has taken.
// S8. While the head has too few units nobody else is served, so that small requests do not
// overtake
//     a large one: the head waits until the present holders have released as many as it lacks.
#pragma once

#include <cstdint>

#include "lockflight/rma/cell.hpp"

namespace lockflight::lock {

/// The next step of the head.
enum class head_step : std::uint8_t {
  wait,       ///< there is no unit: it waits for one
  try_again,  ///< there may be a free one
  had,        ///< the participant has its units
  late,       ///< the time limit is over
  moved,      ///< the semaphore is another one by now
};

/// The numbers of which one changes when a unit becomes free.
struct release_mark {
  rma::word released = 0;
  rma::word deaths = 0;
};

/// Gives back what was taken, unless all that is wanted was (S7). `Taker` has
///   void give_back();  // the units that it has taken
template <class Taker>
class all_or_none {
 public:
  explicit all_or_none(Taker& of) : of_(of) {}
  ~all_or_none() {
    if (!has_all_) of_.give_back();
  }
  all_or_none(const all_or_none&) = delete;
  all_or_none& operator=(const all_or_none&) = delete;
  void keep() { has_all_ = true; }

 private:
  Taker& of_;
  bool has_all_ = false;
};

/// The wait of the participant that holds the queue, until it has its units or cannot wait any
/// longer. A Head has, beside give_back():
///   release_mark mark();
///   bool try_units();                    // takes free units, without waiting; true: it has all
///   head_step before_wait();             // `wait`, or another step in its place
///   head_step await_release(release_mark seen);  // until the mark has changed; not `wait`
template <class Head>
[[nodiscard]] head_step wait_as_head(Head& head) {
  all_or_none taken(head);
  while (true) {
    const release_mark seen = head.mark();
    head_step next = head.try_units() ? head_step::had : head.before_wait();
    if (next == head_step::wait) next = head.await_release(seen);
    if (next == head_step::had) taken.keep();
    if (next != head_step::try_again) return next;
  }
}

/// Takes the units without the queue, and does not wait. False if too few are free: then the
/// participant has none.
template <class Taker>
[[nodiscard]] bool take_past_head(Taker& taker) {
  all_or_none taken(taker);
  const bool has_all = taker.try_units();
  if (has_all) taken.keep();
  return has_all;
}

/// For an operator, who changes which units there are. The head reads them after `released` (S2),
/// so they are stored before the word changes. `Operator` has
///   void store_units();
///   void note_release();
template <class Operator>
void set_units(Operator& by) {
  by.store_units();
  by.note_release();
}

/// For a holder of units. `Holder` has
///   void free_units();
///   void note_release();  // changes `released`, and wakes the head
template <class Holder>
void release_units(Holder& holder) {
  holder.free_units();
  holder.note_release();
}

}  // namespace lockflight::lock
