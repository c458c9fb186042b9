// The first program on libfabric: a counter in rank 0's memory. Prints 1000 for each rank of the
// launch, which LOCKFLIGHT_RENDEZVOUS, LOCKFLIGHT_RANK and LOCKFLIGHT_RANKS describe; without them
// it is one rank.
#include <iostream>
#include <lockflight/fabric/libfabric.hpp>
#include <lockflight/lockflight.hpp>
#include <lockflight/rma/barrier.hpp>
#include <mutex>

using namespace lockflight;

int main() {
  libfabric::environment world;
  const auto machine = libfabric::discover(world, world.size()).machine;
  libfabric::run(world, {.machine = machine}, [](rma::participant<libfabric::port>& me) {
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
