// What an uncontended acquire costs, beside what it is compared with. Figures, and bounds that only
// a mistake exceeds.
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/flight_rw.hpp"
#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

/// The best of some: others share the processors.
template <class Body>
double ns_of(Body body) {
  constexpr int rounds = 100'000;
  double best = 1e9;
  for (int trial = 0; trial < 20; ++trial) {
    const auto before = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) body();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - before;
    best = std::min(best, took.count() / rounds);
  }
  return best;
}

TEST(DomainCost, AnUncontendedAcquireCostsLittleMoreThanThatOfARobustPthreadMutex) {
  pthread_mutexattr_t how;
  pthread_mutexattr_init(&how);
  pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t robust;
  pthread_mutex_init(&robust, &how);
  pthread_mutexattr_destroy(&how);
  const double pthread = ns_of([&] {
    pthread_mutex_lock(&robust);
    pthread_mutex_unlock(&robust);
  });
  double flight = 0;
  double shared = 0;
  shm::run({.threads = true, .pin = false}, [&](rma::participant<shm::port>& me) {
    auto m = lock::create<lock::flight>(me);
    flight = ns_of([&] {
      m.lock();
      m.unlock();
    });
    auto rw = lock::create<lock::flight_rw>(me);
    shared = ns_of([&] {
      rw.lock_shared();
      rw.unlock_shared();
    });
  });
  const own_domain own;
  auto d = domain::open(own.name());
  named_mutex m(d, "m");
  named_shared_mutex rw(d, "rw");
  const double named = ns_of([&] {
    m.lock();
    m.unlock();
  });
  const double named_shared = ns_of([&] {
    rw.lock_shared();
    rw.unlock_shared();
  });
  printf(
      "robust pthread mutex %.1f ns, flight on shm %.1f ns, named_mutex %.1f ns: %.2f of pthread\n"
      "shared: flight-rw on shm %.1f ns, named_shared_mutex %.1f ns: %.2f\n",
      pthread, flight, named, named / pthread, shared, named_shared, named_shared / shared);
  named_semaphore semaphore(d, "s", 3);
  const double units = ns_of([&] {
    semaphore.acquire();
    semaphore.release();
  });
  printf("named_semaphore %.1f ns: %.2f of named_mutex\n", units, units / named);
  EXPECT_LT(units, 30 * named);
  EXPECT_LT(named, 10 * pthread);
  EXPECT_LT(named, 30 * flight);
  EXPECT_LT(named_shared, 30 * shared);
}

}  // namespace
}  // namespace lockflight::test
