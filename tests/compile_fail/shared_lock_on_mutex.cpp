// A mutex has no shared half: std::shared_lock takes reader-writer locks only.
#include <mutex>
#include <shared_mutex>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/lock/d_mcs.hpp"

using namespace lockflight;

void attempt(rma::participant<shm::port>& me) {
  auto lock = lock::create<lock::d_mcs>(me);
#ifdef POSITIVE_CONTROL
  const std::unique_lock guard(lock);
#else
  const std::shared_lock guard(lock);
#endif
}
