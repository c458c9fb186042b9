// C4 holds through decorators.
#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/fabric/strict.hpp"

using namespace lockflight;

void attempt(fabric::counting<fabric::strict<shm::port>>& port, rma::nic_cell at) {
#ifdef POSITIVE_CONTROL
  port.put(at, 1);
#else
  port.store(at, 1);
#endif
}
