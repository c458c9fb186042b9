// lockflight::shared_mutex: the library's default reader-writer lock, with the names of the
// standard library.
#pragma once

#include "lockflight/lock/create.hpp"
#include "lockflight/lock/flight_rw.hpp"
#include "lockflight/rma/cxx20.hpp"
#include "lockflight/timed_names.hpp"

namespace lockflight {

/// The lock flight-rw: `lockflight::shared_mutex m(me); std::shared_lock hold(m);`
///
/// Readers use only cells of their own node, so a read acquire usually costs no network operation.
/// The lock works with std::shared_lock, and with the guards that a mutex works with. It is not
/// recursive. A handle belongs to one participant. examples/readers.cpp is a program.
template <rma::port Port>
class shared_mutex : public lock::created<lock::flight_rw<Port>, Port>,
                     public shared_timed_names<shared_mutex<Port>> {
 public:
  using lock::created<lock::flight_rw<Port>, Port>::created;
};

template <rma::port Port, class... More>
shared_mutex(rma::participant<Port>&, More&&...) -> shared_mutex<Port>;

}  // namespace lockflight
