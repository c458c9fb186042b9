// C2: a read-modify-write through the fabric on a cpu cell does not compile.
#include "lockflight/fabric/shm.hpp"

using namespace lockflight;

#ifdef POSITIVE_CONTROL
using cell = rma::nic_cell;
#else
using cell = rma::cpu_cell;
#endif

void attempt(shm::port& port, cell at, rma::word& before) { port.compare_swap(at, 0, 1, before); }
