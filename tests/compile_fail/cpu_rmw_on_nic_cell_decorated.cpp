// C2 holds through decorators: their operations take the same types.
#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/delaying.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/fabric/strict.hpp"

using namespace lockflight;
using port_type = fabric::counting<fabric::strict<fabric::delaying<shm::port>>>;

#ifdef POSITIVE_CONTROL
using cell = rma::cpu_cell;
#else
using cell = rma::nic_cell;
#endif

rma::word attempt(port_type& port, cell at) { return port.cpu_compare_swap(at, 0, 1); }
