// A lock that enters the list has try_lock().
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/requirements.hpp"

namespace lockflight::lock {

template <rma::port Port>
class incomplete : public d_mcs<Port> {
 public:
  using d_mcs<Port>::d_mcs;
#ifndef POSITIVE_CONTROL
  bool try_lock() = delete;
#endif
};
static_assert(check_requirements<incomplete>());

}  // namespace lockflight::lock
