// A mutex has no shared half, neither by attempt.
#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/lock/d_mcs.hpp"

using namespace lockflight;

bool attempt(rma::participant<shm::port>& me) {
  auto lock = lock::create<lock::d_mcs>(me);
#ifdef POSITIVE_CONTROL
  return lock.try_lock();
#else
  return lock.try_lock_shared();
#endif
}
