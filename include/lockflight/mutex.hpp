// lockflight::mutex: the library's mutex of choice, with std names.
#pragma once

#include "lockflight/lock/create.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/timed_names.hpp"

namespace lockflight {

/// A mutex that stays on its node while it is wanted there, and costs no network operation there:
/// flight. Works with std::lock_guard, std::unique_lock, also with a time, and std::scoped_lock.
/// Not recursive; a handle belongs to one participant. Nobody is passed by more often than
/// flight.hpp says.
///
/// `unlock` makes visible to the next holder what the holder stored, and what it posted and
/// flushed; posted operations that are not flushed are not waited for.
template <rma::port Port>
class mutex : public lock::created<lock::flight<Port>, Port>, public timed_names<mutex<Port>> {
 public:
  using lock::created<lock::flight<Port>, Port>::created;
};

template <rma::port Port, class... More>
mutex(rma::participant<Port>&, More&&...) -> mutex<Port>;

}  // namespace lockflight
