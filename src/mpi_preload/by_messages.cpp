#include "mpi_preload/by_messages.hpp"

#include <array>
#include <cstddef>

#include "fabric/mpi/calls.hpp"
#include "lockflight/rma/assert.hpp"

namespace lockflight::mpi_preload {
namespace {

constexpr std::size_t most_bytes = 64;

struct channel {
  MPI_Comm all;
  int tag;
  int count;
  MPI_Datatype type;

  void send(const void* values, int to) const {
    MPI_Request request = MPI_REQUEST_NULL;
    mpi::detail::check(PMPI_Isend(values, count, type, to, tag, all, &request), "MPI_Isend");
    mpi::detail::finish(request, "MPI_Isend");
  }
  void receive(void* values, int from) const {
    MPI_Request request = MPI_REQUEST_NULL;
    mpi::detail::check(PMPI_Irecv(values, count, type, from, tag, all, &request), "MPI_Irecv");
    mpi::detail::finish(request, "MPI_Irecv");
  }
};

}  // namespace

// The values go up and down a binomial tree whose root is rank 0: a rank's parent is the rank
// without its lowest bit that is set.
void combine_by_messages(MPI_Comm all, int tag, void* values, int count, MPI_Datatype type,
                         MPI_Op op) {
  int rank = 0;
  int ranks = 0;
  int size = 0;
  PMPI_Comm_rank(all, &rank);
  PMPI_Comm_size(all, &ranks);
  PMPI_Type_size(type, &size);
  const channel by{all, tag, count, type};
  // No allocation, which could fail on one rank alone.
  std::array<std::byte, most_bytes> theirs;
  rma::ensure(std::size_t{1} * static_cast<std::size_t>(count) * static_cast<std::size_t>(size) <=
                  theirs.size(),
              "values that are combined by messages are few");
  int bit = 1;
  for (; bit < ranks && (rank & bit) == 0; bit <<= 1) {
    if (rank + bit >= ranks) continue;
    by.receive(theirs.data(), rank + bit);
    PMPI_Reduce_local(theirs.data(), values, count, type, op);
  }
  if (rank != 0) {
    by.send(values, rank - bit);
    by.receive(values, rank - bit);
  }
  for (bit >>= 1; bit > 0; bit >>= 1)
    if (rank + bit < ranks) by.send(values, rank + bit);
}

}  // namespace lockflight::mpi_preload
