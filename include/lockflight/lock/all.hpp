// The list of all locks, for programs that treat them alike: the bench, the tests, the checker.
#pragma once

#include "lockflight/lock/alock.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/dlm_server.hpp"
#include "lockflight/lock/dq.hpp"
#include "lockflight/lock/dq_fair.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/flight_rw.hpp"
#include "lockflight/lock/fompi_rw.hpp"
#include "lockflight/lock/mcs_rw_fair.hpp"
#include "lockflight/lock/mcs_rw_rp.hpp"
#include "lockflight/lock/mcs_rw_wp.hpp"
#include "lockflight/lock/msg.hpp"
#include "lockflight/lock/rma_mcs.hpp"
#include "lockflight/lock/rma_rw.hpp"
#include "lockflight/lock/spin.hpp"

namespace lockflight::lock {

/// A lock template as a value that can be passed around.
template <template <class> class Lock>
struct family {
  template <class Port>
  using on = Lock<Port>;
};

template <class... Families>
struct families {
  /// Calls `visit(Families{})` for each, in order.
  template <class Visit>
  static void for_each(Visit visit) {
    (visit(Families{}), ...);
  }
};

/// Every RMA lock, in the order of the lock table. The baselines are in lockflight/baseline. The
/// build of the benchmark, the checker and the mutants reads this list (src/catalogue).
using all =
    families<family<spin>, family<spin_backoff>, family<d_mcs>, family<rma_mcs>, family<alock>,
             family<dq>, family<dq_fair>, family<dlm_server>, family<fompi_rw>,
             family<fompi_rw_backoff>, family<rma_rw>, family<mcs_rw_rp>, family<mcs_rw_wp>,
             family<mcs_rw_fair>, family<msg>, family<flight>, family<flight_rw>>;

}  // namespace lockflight::lock
