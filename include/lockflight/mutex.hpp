// lockflight::mutex: the library's default mutex, with the names of the standard library.
#pragma once

#include "lockflight/lock/create.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/rma/cxx20.hpp"
#include "lockflight/timed_names.hpp"

namespace lockflight {

/// The lock flight: `lockflight::mutex m(me); std::scoped_lock hold(m);`
///
/// While participants of one node want the mutex it stays on that node, up to a bound, and costs no
/// network operation there. It works with std::lock_guard, std::scoped_lock and std::unique_lock,
/// also with a time limit. It is not recursive. A handle belongs to one participant. flight.hpp
/// says where a number bounds how often a waiter is overtaken.
///
/// After `unlock`, the next holder sees what the holder stored, and what it posted and flushed.
/// `unlock` does not wait for posted operations that are not flushed.
template <rma::port Port>
class mutex : public lock::created<lock::flight<Port>, Port>, public timed_names<mutex<Port>> {
 public:
  using lock::created<lock::flight<Port>, Port>::created;
};

template <rma::port Port, class... More>
mutex(rma::participant<Port>&, More&&...) -> mutex<Port>;

}  // namespace lockflight
