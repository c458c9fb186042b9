// Reader-writer locks in a SHMEM program, which has mutexes only: PE 0's symmetric memory holds two
// words that writers keep equal, and readers on all PEs check it. A writer that has
// waited a millisecond gives up and tries again. Prints 1000 for each PE.
#include <shmem.h>

#include <chrono>
#include <iostream>
#include <lockflight/fabric/oshmem.hpp>
#include <lockflight/lockflight.hpp>
#include <mutex>
#include <shared_mutex>

using namespace lockflight;

int main() {
  shmem_init();
  long* const counts = static_cast<long*>(shmem_calloc(2, sizeof(long)));
  {
    oshmem::environment world(oshmem::started_by::program);
    const auto machine = oshmem::discover(world, world.size()).machine;
    oshmem::run(world, {.machine = machine}, [&](rma::participant<oshmem::port>& me) {
      lockflight::shared_mutex lock(me);
      for (int i = 0; i < 1000; ++i) {
        {
          std::shared_lock reads(lock);
          if (shmem_long_g(&counts[0], 0) != shmem_long_g(&counts[1], 0)) shmem_global_exit(1);
        }
        std::unique_lock writes(lock, std::defer_lock);
        while (!writes.try_lock_for(std::chrono::milliseconds(1))) continue;
        const long next = shmem_long_g(&counts[0], 0) + 1;
        shmem_long_p(&counts[0], next, 0);
        shmem_long_p(&counts[1], next, 0);
        shmem_quiet();  // before the next holder reads
      }
    });
  }
  shmem_barrier_all();
  if (shmem_my_pe() == 0) std::cout << counts[0] << '\n';
  shmem_free(counts);
  shmem_finalize();
}
