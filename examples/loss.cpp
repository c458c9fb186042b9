// A holder that is told that its lock is lost: it stops its work, and says that it was not all done
// under the lock. Here somebody removes the domain; in the domain of a cluster ("etcd:jobs") a hold
// is lost when its host is cut off.
//
// Prints "stopped: the lock was lost".
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <stop_token>
#include <string>
#include <thread>

#include "lockflight/domain.hpp"

int main() {
  using namespace std::chrono_literals;
  const std::string name = "example-loss-" + std::to_string(getpid());
  const lockflight::domain work = lockflight::domain::open(name);
  lockflight::named_mutex jobs(work, "jobs");
  jobs.lock();
  const std::stop_token loss = jobs.loss();

  std::jthread somebody([&] {
    std::this_thread::sleep_for(50ms);
    lockflight::domain::remove(name, true);
  });
  while (!loss.stop_requested()) std::this_thread::sleep_for(1ms);  // the work

  try {
    jobs.release(lockflight::if_lost::throws);
    std::puts("done");
  } catch (const lockflight::lost_error&) {
    std::puts("stopped: the lock was lost");
  }
}
