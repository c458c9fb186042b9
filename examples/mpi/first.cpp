// The first program on MPI: a counter in rank 0's memory. Prints 1000 for each rank of the launch.
#include <iostream>
#include <lockflight/fabric/mpi.hpp>
#include <lockflight/lockflight.hpp>
#include <lockflight/rma/barrier.hpp>
#include <mutex>

using namespace lockflight;

int main() {
  const mpi::environment world;  // or your own MPI_Init_thread
  mpi::run({.machine = mpi::discover(world.size()).machine}, [](rma::participant<mpi::port>& me) {
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
