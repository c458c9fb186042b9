// lockflight::shared_mutex: the library's reader-writer lock of choice, with std names.
#pragma once

#include "lockflight/lock/create.hpp"
#include "lockflight/lock/flight_rw.hpp"
#include "lockflight/timed_names.hpp"

namespace lockflight {

/// A reader-writer lock whose readers never leave their node, while readers and writers take turns:
/// flight-rw. Works with std::shared_lock beside the guards of a mutex. Not recursive; a handle
/// belongs to one participant.
template <rma::port Port>
class shared_mutex : public lock::created<lock::flight_rw<Port>, Port>,
                     public shared_timed_names<shared_mutex<Port>> {
 public:
  using lock::created<lock::flight_rw<Port>, Port>::created;
};

template <rma::port Port, class... More>
shared_mutex(rma::participant<Port>&, More&&...) -> shared_mutex<Port>;

}  // namespace lockflight
