// lockflight::mutex: the library's mutex of choice, with std names.
#pragma once

#include "lockflight/lock/create.hpp"
#include "lockflight/lock/rma_mcs.hpp"

namespace lockflight {

/// A fair mutex that keeps the lock near: rma-mcs. Works with std::lock_guard, std::unique_lock and
/// std::scoped_lock. Not recursive; a handle belongs to one participant.
///
/// Taking several with one std::scoped_lock is free of deadlock, but it tries and backs off, and a
/// lock that many ranks keep passing on inside an element rarely looks free: with many ranks, take
/// them in one agreed order instead.
///
/// `unlock` makes visible to the next holder what the holder stored, and what it posted and
/// flushed; posted operations that are not flushed are not waited for.
template <rma::port Port>
class mutex : public lock::created<lock::rma_mcs<Port>, Port> {
 public:
  using lock::created<lock::rma_mcs<Port>, Port>::created;
};

template <rma::port Port, class... More>
mutex(rma::participant<Port>&, More&&...) -> mutex<Port>;

}  // namespace lockflight
