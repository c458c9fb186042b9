// The UCX fabric for the ranks of an MPI communicator: ucx::introduced_by is wired_mpi.hpp's.
#pragma once

#include "lockflight/fabric/ucx.hpp"
#include "lockflight/fabric/wired_mpi.hpp"
