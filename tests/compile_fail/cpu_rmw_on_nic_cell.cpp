// C2: a CPU's atomic does not see a NIC's; a cpu read-modify-write on a nic cell does not compile.
#include "lockflight/fabric/shm.hpp"

using namespace lockflight;

#ifdef POSITIVE_CONTROL
using cell = rma::cpu_cell;
#else
using cell = rma::nic_cell;
#endif

rma::word attempt(shm::port& port, cell at) { return port.cpu_fetch_add(at, 1); }
