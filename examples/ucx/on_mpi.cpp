// An MPI program that locks over UCX: MPI introduces the ranks of its communicator to each other. A
// counter in rank 0's memory; prints 1000 for each rank.
#include <iostream>
#include <lockflight/fabric/ucx_mpi.hpp>
#include <lockflight/lockflight.hpp>
#include <lockflight/rma/barrier.hpp>
#include <mutex>

using namespace lockflight;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    ucx::environment world(ucx::introduced_by(MPI_COMM_WORLD));
    const auto machine = ucx::discover(world, world.size()).machine;
    ucx::run(world, {.machine = machine}, [](rma::participant<ucx::port>& me) {
      lockflight::mutex mutex(me);
      const auto counter = me.cells().take<rma::plain_cell>(1);
      rma::barrier all(me);
      for (int i = 0; i < 1000; ++i) {
        std::scoped_lock hold(mutex);
        put_now(me.port(), counter, get_now(me.port(), counter) + 1);
      }
      all.arrive_and_wait();
      if (me.rank() == 0) std::cout << me.port().load(counter) << '\n';
    });
  }
  MPI_Finalize();
}
