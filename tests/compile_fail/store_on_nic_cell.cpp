// C4: a NIC's read-modify-write could swallow a CPU's store; a nic cell is written with put.
#include "lockflight/fabric/shm.hpp"

using namespace lockflight;

void attempt(shm::port& port, rma::nic_cell at) {
#ifdef POSITIVE_CONTROL
  port.put(at, 1);
#else
  port.store(at, 1);
#endif
}
