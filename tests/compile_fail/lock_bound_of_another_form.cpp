// A bound that the checker would not find, since it has another form.
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/requirements.hpp"

namespace lockflight::lock {

template <rma::port Port>
class incomplete : public d_mcs<Port> {
 public:
  using d_mcs<Port>::d_mcs;
#ifndef POSITIVE_CONTROL
  static std::int64_t most_overtaken(const rma::topology&) { return 0; }
#endif
};
static_assert(check_requirements<incomplete>());

}  // namespace lockflight::lock
