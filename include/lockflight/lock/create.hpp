// Creating a lock together with its words.
//
// Invariant: all participants construct the same locks in the same order (C20). No communication is
// needed, since fresh cells are 0, which means free.
#pragma once

#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

/// A lock that takes its words from the participant's layout when it is constructed, or that has
/// words already. It is a handle of one participant, and can neither be copied nor moved, as
/// std::mutex: a copy that is made while the lock is held would release it once more.
template <class Lock, rma::port Port>
class created : public Lock {
 public:
  explicit created(rma::participant<Port>& me, const typename Lock::parameters& set = {},
                   rma::rank_t home = 0)
      : Lock(me, Lock::cells::place(me.cells(), me.machine(), set, home), set) {}
  created(rma::participant<Port>& me, const typename Lock::cells& words,
          const typename Lock::parameters& set)
      : Lock(me, words, set) {}
  created(const created&) = delete;  // accepted: a reference, such as `auto& lock = table[3]`
  created& operator=(const created&) = delete;
};

/// `auto lock = lock::create<lock::d_mcs>(me);`
template <template <class> class Lock, rma::port Port>
[[nodiscard]] created<Lock<Port>, Port> create(rma::participant<Port>& me,
                                               const typename Lock<Port>::parameters& set = {},
                                               rma::rank_t home = 0) {
  return created<Lock<Port>, Port>(me, set, home);
}

}  // namespace lockflight::lock
