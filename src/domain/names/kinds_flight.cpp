#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/flight_rw.hpp"

#include "domain/names/kind_of.hpp"

namespace lockflight::detail {

void add_flight_kinds(std::vector<domain_kind>& to) {
  to.push_back(kind_of<lock::flight>());
  to.push_back(kind_of<lock::flight_rw>());
}

}  // namespace lockflight::detail
