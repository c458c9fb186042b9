#include <iostream>
#include <lockflight/lockflight.hpp>
#include <lockflight/rma/barrier.hpp>
#include <mutex>

using namespace lockflight;

int main() {
  // Four processes; a lock and a counter in the memory that they share.
  shm::run({.machine = rma::topology::flat(4)}, [](rma::participant<shm::port>& me) {
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
