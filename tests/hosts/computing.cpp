// Rank 0, where the lock lies, computes for 300 ms and calls nothing meanwhile; the last rank locks
// and unlocks 20 times. Prints how long the longest of these took, and how much of a core rank 0's
// process uses while all sleep. progress_test.py runs it.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <lockflight/fabric/mpi.hpp>
#include <lockflight/lockflight.hpp>
#include <lockflight/rma/barrier.hpp>
#include <stdexcept>
#include <thread>

namespace {

using namespace lockflight;
using steady = std::chrono::steady_clock;
using milliseconds = std::chrono::duration<double, std::milli>;

double cpu_ms() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto ms = [](timeval t) {
    return 1e3 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_usec);
  };
  return ms(used.ru_utime) + ms(used.ru_stime);
}

void measure(rma::participant<mpi::port>& me) {
  constexpr milliseconds computed(300);
  constexpr milliseconds slept(1'000);
  lockflight::mutex mutex(me);
  rma::barrier all(me);
  const rma::rank_t last = me.machine().ranks() - 1;
  if (me.rank() == last) mutex.lock(), mutex.unlock();  // it has a connection then
  all.arrive_and_wait();
  if (me.rank() == 0)
    for (const auto end = steady::now() + computed; steady::now() < end;) continue;
  if (me.rank() == last) {
    milliseconds longest(0);
    for (int i = 0; i < 20; ++i) {
      const auto asked = steady::now();
      mutex.lock();
      longest = std::max(longest, milliseconds(steady::now() - asked));
      mutex.unlock();
    }
    std::printf("longest_ms %.3f\n", longest.count());
    std::fflush(stdout);  // MPI_Finalize may hang (docs/mpi-details.md)
  }
  all.arrive_and_wait();
  const double before = cpu_ms();
  std::this_thread::sleep_for(slept);
  if (me.rank() == 0) {
    std::printf("of_a_core %.4f\n", (cpu_ms() - before) / slept.count());
    std::fflush(stdout);
  }
  all.arrive_and_wait();
}

}  // namespace

int main() try {
  mpi::environment world;
  mpi::run({.machine = mpi::discover(world.size()).machine}, measure);
} catch (const std::invalid_argument& e) {
  std::fprintf(stderr, "lockflight: %s\n", e.what());
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "lockflight: %s\n", e.what());
  return 3;
}
