// The UCX fabric on the communicators of an MPI program: what mpirun starts with four ranks.
//
// Prints "all holds", or says what does not and ends the launch with 1.
#include "lockflight/fabric/ucx_mpi.hpp"

#include <cstdio>
#include <cstring>
#include <mutex>

#include "lockflight/lockflight.hpp"
#include "lockflight/rma/barrier.hpp"

namespace {

using namespace lockflight;

constexpr int launched = 4;
constexpr int rounds = 20;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "on_mpi.cpp: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

template <class Error, class F>
void refuses(F f, const char* words) {
  try {
    f();
  } catch (const Error& e) {
    return require(std::strstr(e.what(), words) != nullptr, e.what());
  }
  require(false, words);
}

/// All ranks of the communicator count, and MPI is used in between.
void counts_on(MPI_Comm all) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
  ucx::environment world(ucx::introduced_by(all));
  require(world.rank() == rank && world.size() == size, "ranks are numbered as in MPI");
  const auto machine = ucx::discover(world, size).machine;
  ucx::run(world, {.machine = machine}, [&](rma::participant<ucx::port>& me) {
    lockflight::mutex mutex(me);
    const auto counter = me.cells().take<rma::plain_cell>(1);
    rma::barrier met(me);
    for (int i = 0; i < rounds; ++i) {
      const std::scoped_lock hold(mutex);
      put_now(me.port(), counter, get_now(me.port(), counter) + 1);
    }
    met.arrive_and_wait();
    MPI_Barrier(all);
    const rma::word sum = get_now(me.port(), counter);
    require(sum == static_cast<rma::word>(rounds * size), "no count is lost");
    met.arrive_and_wait();
  });
}

}  // namespace

int main(int argc, char** argv) {
  refuses<std::invalid_argument>([] { static_cast<void>(ucx::introduced_by(MPI_COMM_WORLD)); },
                                 "not initialised");
  MPI_Init(&argc, &argv);
  refuses<std::invalid_argument>([] { static_cast<void>(ucx::introduced_by(MPI_COMM_NULL)); },
                                 "MPI_COMM_NULL");
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  require(size == launched, "four ranks");

  counts_on(MPI_COMM_WORLD);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  counts_on(half);  // the other half beside it
  MPI_Comm_free(&half);

  // An introduction that is wrong: all say so.
  ucx::introduction wrong = ucx::introduced_by(MPI_COMM_WORLD);
  if (rank == 2) wrong.rank = 1;
  refuses<ucx::unavailable>([&] { ucx::environment world(wrong); }, "two processes are rank 1");
  wrong = ucx::introduced_by(MPI_COMM_WORLD);
  if (rank == 3) wrong.ranks = 7;
  refuses<ucx::unavailable>([&] { ucx::environment world(wrong); }, "says that there are 7 ranks");

  MPI_Finalize();
  refuses<std::invalid_argument>([] { static_cast<void>(ucx::introduced_by(MPI_COMM_WORLD)); },
                                 "been finalised");
  if (rank == 0) std::puts("all holds");
}
