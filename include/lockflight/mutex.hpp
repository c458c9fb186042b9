// lockflight::mutex: the library's mutex of choice, with std names.
#pragma once

#include "lockflight/lock/create.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/timed_names.hpp"

namespace lockflight {

/// The lock flight: a mutex that stays on its node while participants of that node want it, and
/// costs no network operation there. It works with std::lock_guard, std::unique_lock (timed too)
/// and std::scoped_lock. It is not recursive; a handle belongs to one participant. flight.hpp says
/// how often a waiter can be overtaken.
///
/// `unlock` makes visible to the next holder what the holder stored, and what it posted and
/// flushed. It does not wait for posted operations that are not flushed.
template <rma::port Port>
class mutex : public lock::created<lock::flight<Port>, Port>, public timed_names<mutex<Port>> {
 public:
  using lock::created<lock::flight<Port>, Port>::created;
};

template <rma::port Port, class... More>
mutex(rma::participant<Port>&, More&&...) -> mutex<Port>;

}  // namespace lockflight
