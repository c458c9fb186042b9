// A lock with the parameters of a profile, which `lockflight tune --out` has written.
//
// usage: tuned [PROFILE], or with LOCKFLIGHT_PROFILE=PROFILE; without either it has its defaults
#include <cstdio>
#include <lockflight/lock/create.hpp>
#include <lockflight/lock/flight.hpp>
#include <lockflight/lockflight.hpp>
#include <lockflight/profile.hpp>
#include <lockflight/rma/barrier.hpp>
#include <mutex>
#include <string>

namespace lock = lockflight::lock;
namespace rma = lockflight::rma;
namespace shm = lockflight::shm;

namespace {

constexpr int rounds = 1'000;

void work(rma::participant<shm::port>& me, const lock::flight<shm::port>::parameters& set) {
  auto mutex = lock::create<lock::flight>(me, set);
  const auto counter = me.cells().take<rma::plain_cell>(1);
  rma::barrier all(me);
  for (int i = 0; i < rounds; ++i) {
    const std::scoped_lock hold(mutex);
    put_now(me.port(), counter, get_now(me.port(), counter) + 1);
  }
  all.arrive_and_wait();
  if (me.rank() == 0)
    std::printf("local_budget %ld: %ld\n", static_cast<long>(set.local_budget),
                static_cast<long>(get_now(me.port(), counter)));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    // Before there are ranks: all of them must have the same.
    const auto tuned =
        argc > 1 ? lockflight::profile::read(argv[1]) : lockflight::profile::from_environment();
    const auto set = tuned.parameters_of<lock::flight<shm::port>>();
    shm::run({.machine = rma::topology::balanced({2, 2})},
             [&](rma::participant<shm::port>& me) { work(me, set); });
  } catch (const lockflight::bad_profile& e) {
    std::fprintf(stderr, "tuned: %s\n", e.what());
    return 1;
  }
  return 0;
}
