// A wired launch (wired.hpp) of the ranks of an MPI communicator. MPI only introduces them to each
// other: the operations of the locks go through UCX or libfabric.
//
//   ucx::environment world(wired::introduced_by(MPI_COMM_WORLD));
//
// The function is in a header, so that the fabric's library depends on no MPI: a program compiles
// it with its own MPI.
// Cost: two broadcasts.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "lockflight/fabric/wired.hpp"

namespace lockflight::wired {

/// The ranks of `communicator`, numbered as there. MPI is initialised; the communicator lasts until
/// the environment is made, and all its ranks make one. Throws std::invalid_argument.
[[nodiscard]] inline introduction introduced_by(MPI_Comm communicator) {
  int is = 0;
  MPI_Initialized(&is);
  if (is == 0)
    throw std::invalid_argument("MPI is not initialised (accepted: an MPI that can be called)");
  MPI_Finalized(&is);
  if (is != 0)
    throw std::invalid_argument("MPI has been finalised (accepted: an MPI that can be called)");
  if (communicator == MPI_COMM_NULL)
    throw std::invalid_argument("MPI_COMM_NULL (accepted: a communicator that has this process)");
  introduction made;
  MPI_Comm_rank(communicator, &made.rank);
  MPI_Comm_size(communicator, &made.ranks);
  made.from_first = [communicator](const std::string& mine) {
    std::string text = mine;
    std::uint64_t length = text.size();
    MPI_Bcast(&length, 1, MPI_UINT64_T, 0, communicator);
    text.resize(length);
    MPI_Bcast(text.data(), static_cast<int>(length), MPI_CHAR, 0, communicator);
    return text;
  };
  return made;
}

}  // namespace lockflight::wired
