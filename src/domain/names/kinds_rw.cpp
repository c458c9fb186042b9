#include "lockflight/lock/fompi_rw.hpp"
#include "lockflight/lock/mcs_rw_fair.hpp"
#include "lockflight/lock/mcs_rw_rp.hpp"
#include "lockflight/lock/mcs_rw_wp.hpp"
#include "lockflight/lock/rma_rw.hpp"

#include "domain/names/kind_of.hpp"

namespace lockflight::detail {

void add_rw_kinds(std::vector<domain_kind>& to) {
  to.push_back(kind_of<lock::fompi_rw>());
  to.push_back(kind_of<lock::fompi_rw_backoff>());
  to.push_back(kind_of<lock::rma_rw>());
  to.push_back(kind_of<lock::mcs_rw_rp>());
  to.push_back(kind_of<lock::mcs_rw_wp>());
  to.push_back(kind_of<lock::mcs_rw_fair>());
}

}  // namespace lockflight::detail
