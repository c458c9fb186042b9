// C2: … nor with the CPU.
#include "lockflight/fabric/shm.hpp"

using namespace lockflight;

#ifdef POSITIVE_CONTROL
using cell = rma::cpu_cell;
#else
using cell = rma::plain_cell;
#endif

rma::word attempt(shm::port& port, cell at) { return port.cpu_swap(at, 1); }
