// C2: no participant read-modify-writes a plain cell, neither through the fabric …
#include "lockflight/fabric/shm.hpp"

using namespace lockflight;

#ifdef POSITIVE_CONTROL
using cell = rma::nic_cell;
#else
using cell = rma::plain_cell;
#endif

void attempt(shm::port& port, cell at) { port.add(at, 1); }
