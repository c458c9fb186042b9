#include "lockflight/lock/alock.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/dq.hpp"
#include "lockflight/lock/dq_fair.hpp"
#include "lockflight/lock/rma_mcs.hpp"
#include "lockflight/lock/spin.hpp"

#include "domain/names/kind_of.hpp"

namespace lockflight::detail {

void add_queue_kinds(std::vector<domain_kind>& to) {
  to.push_back(kind_of<lock::spin>());
  to.push_back(kind_of<lock::spin_backoff>());
  to.push_back(kind_of<lock::d_mcs>());
  to.push_back(kind_of<lock::rma_mcs>());
  to.push_back(kind_of<lock::alock>());
  to.push_back(kind_of<lock::dq>());
  to.push_back(kind_of<lock::dq_fair>());
}

}  // namespace lockflight::detail
