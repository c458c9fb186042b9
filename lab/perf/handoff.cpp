// How long a handoff over UCX takes: from the moment when the holder of d-mcs calls unlock, to the
// one when lock returns to a waiter on another host.
//
// usage: handoff ROUNDS WAIT_US
//
// The waiter has waited for WAIT_US then: later it yields its core between two looks. A launch has
// started two ranks, on two hosts of one machine: their clocks are the same one. Rank 0 prints the
// median, in microseconds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <vector>

#include "lockflight/fabric/ucx.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/rma/barrier.hpp"

namespace {

using namespace lockflight;

rma::word now_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);  // hosts of the testbed have monotone clocks of their own
  return static_cast<rma::word>(t.tv_sec) * 1'000'000'000 + static_cast<rma::word>(t.tv_nsec);
}

/// Lets the other rank queue and wait. It is served meanwhile.
void pass_ns(ucx::port& port, rma::word time) {
  for (const rma::word end = now_ns() + time; now_ns() < end;) port.pause(1'000);
}

void measure(rma::participant<ucx::port>& me, int rounds, rma::word waited_ns) {
  auto lock = lock::create<lock::d_mcs>(me);
  const auto left_at = me.cells().take<rma::plain_cell>(1);  // rank 0's
  rma::barrier<ucx::port> all(me);
  std::vector<double> took_us;
  for (int i = 0; i < rounds; ++i) {
    // Rank 1 hands over to rank 0, which lies where the lock does.
    if (me.rank() == 1) lock.lock();
    all.arrive_and_wait();
    rma::word entered = 0;
    if (me.rank() == 0) {
      lock.lock();
      entered = now_ns();
    } else {
      pass_ns(me.port(), waited_ns);
      const rma::word left = now_ns();
      lock.unlock();
      put_now(me.port(), left_at.at(0), left);
    }
    all.arrive_and_wait();
    if (me.rank() != 0) continue;
    lock.unlock();
    took_us.push_back(1e-3 * static_cast<double>(entered - me.port().load(left_at.at(0))));
  }
  all.arrive_and_wait();
  if (me.rank() != 0) return;
  std::nth_element(took_us.begin(), took_us.begin() + rounds / 2, took_us.end());
  std::printf("%.3f\n", took_us[static_cast<std::size_t>(rounds / 2)]);
}

}  // namespace

int main(int argc, char** argv) try {
  const int rounds = argc == 3 ? std::atoi(argv[1]) : 0;
  const int waited_us = argc == 3 ? std::atoi(argv[2]) : 0;
  ucx::environment world;
  if (rounds < 1 || waited_us < 1 || world.size() != 2) {
    std::fputs("usage: handoff ROUNDS WAIT_US, by a launch of two ranks\n", stderr);
    return 2;
  }
  ucx::run(world, {.machine = ucx::discover(world, world.size()).machine},
           [&](rma::participant<ucx::port>& me) {
             measure(me, rounds, static_cast<rma::word>(waited_us) * 1'000);
           });
} catch (const std::exception& e) {
  std::fprintf(stderr, "handoff: %s\n", e.what());
  return 3;
}
