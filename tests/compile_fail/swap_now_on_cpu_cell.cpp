// C2 holds in the helpers that post and flush at once.
#include "lockflight/fabric/shm.hpp"

using namespace lockflight;

#ifdef POSITIVE_CONTROL
using cell = rma::nic_cell;
#else
using cell = rma::cpu_cell;
#endif

rma::word attempt(shm::port& port, cell at) { return rma::swap_now(port, at, 1); }
