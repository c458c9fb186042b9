// lockflight::shared_mutex: the library's reader-writer lock of choice, with std names.
#pragma once

#include "lockflight/lock/create.hpp"
#include "lockflight/lock/flight_rw.hpp"
#include "lockflight/timed_names.hpp"

namespace lockflight {

/// The lock flight-rw: a reader-writer lock whose readers use only cells of their own node. Works
/// with std::shared_lock beside the guards of a mutex. It is not recursive; a handle belongs to one
/// participant.
template <rma::port Port>
class shared_mutex : public lock::created<lock::flight_rw<Port>, Port>,
                     public shared_timed_names<shared_mutex<Port>> {
 public:
  using lock::created<lock::flight_rw<Port>, Port>::created;
};

template <rma::port Port, class... More>
shared_mutex(rma::participant<Port>&, More&&...) -> shared_mutex<Port>;

}  // namespace lockflight
