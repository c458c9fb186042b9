// A lock that says that it has shared holders has the calls for them.
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/requirements.hpp"

namespace lockflight::lock {

template <rma::port Port>
class incomplete : public d_mcs<Port> {
 public:
  static constexpr facts about = [] {
    facts made = d_mcs<Port>::about;
#ifndef POSITIVE_CONTROL
    made.what = kind::rw;
#endif
    return made;
  }();
  using d_mcs<Port>::d_mcs;
};
static_assert(check_requirements<incomplete>());

}  // namespace lockflight::lock
