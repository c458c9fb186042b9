// C2 holds through decorators, those that only forward included.
#include "lockflight/fabric/shm.hpp"
#include "lockflight/fabric/tracing.hpp"

using namespace lockflight;
using port_type = fabric::tracing<fabric::decorator<shm::port>>;

#ifdef POSITIVE_CONTROL
using cell = rma::nic_cell;
#else
using cell = rma::cpu_cell;
#endif

void attempt(port_type& port, cell at, rma::word& before) { port.swap(at, 1, before); }
