// Collective calls made of messages with a tag. MPI's own are matched by their order on a
// communicator; windows that share one may be freed by several threads, in any order.
#pragma once

#include <mpi.h>

namespace lockflight::mpi_preload {

/// Combines `count` values of every rank in place, on every rank. No rank returns before all have
/// come. Operations must commute.
void combine_by_messages(MPI_Comm all, int tag, void* values, int count, MPI_Datatype type,
                         MPI_Op op);

}  // namespace lockflight::mpi_preload
