// How fast a lock is within a node, as a program has it that is compiled for its fabric: over shm,
// or over UCX with ranks that share a node.
//
// usage: own_node shm|ucx LOCK SECONDS
//
// shm starts two ranks; for ucx a launch has started them. Each rank acquires and releases an empty
// critical section; rank 0 prints how many there were in a second, of all ranks together. Of a
// reader-writer lock one acquire in 500 is a write. `lockflight bench` is compiled for shm, and
// goes through virtual calls on other fabrics: its figures do not compare the two.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/fabric/ucx.hpp"
#include "lockflight/lock/create.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/flight_rw.hpp"
#include "lockflight/lock/rma_rw.hpp"
#include "lockflight/rma/barrier.hpp"

namespace {

using namespace lockflight;

constexpr int acquires_between_looks = 64;
constexpr unsigned one_write_in = 500;

double now_s() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <template <class> class Lock, class Port>
void measure(rma::participant<Port>& me, double seconds) {
  auto lock = lock::create<Lock>(me);
  const auto done = me.cells().template take<rma::plain_cell>(1);
  rma::barrier<Port> all(me);
  all.arrive_and_wait();
  std::uint64_t acquires = 0;
  const double begun = now_s();
  for (double end = begun + seconds; now_s() < end;)
    for (int i = 0; i < acquires_between_looks; ++i) {
      if constexpr (requires { lock.lock_shared(); }) {
        if (++acquires % one_write_in != 0) {
          lock.lock_shared();
          lock.unlock_shared();
          continue;
        }
      } else {
        ++acquires;
      }
      lock.lock();
      lock.unlock();
    }
  const double took = now_s() - begun;
  put_now(me.port(), done.at(me.rank()),
          static_cast<rma::word>(static_cast<double>(acquires) / took));
  all.arrive_and_wait();
  if (me.rank() == 0) {
    rma::word sum = 0;
    for (int r = 0; r < me.machine().ranks(); ++r) sum += get_now(me.port(), done.at(r));
    std::printf("%llu\n", static_cast<unsigned long long>(sum));
    std::fflush(stdout);
  }
  all.arrive_and_wait();
}

template <template <class> class Lock>
void run(bool on_ucx, double seconds) {
  const auto body = [&](auto& me) { measure<Lock>(me, seconds); };
  if (on_ucx) {
    ucx::environment world;
    ucx::run(world, {.machine = ucx::discover(world, world.size()).machine}, body);
  } else {
    shm::run({.machine = rma::topology::flat(2)}, body);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool on_ucx = argc == 4 && std::strcmp(argv[1], "ucx") == 0;
  const double seconds = argc == 4 ? std::atof(argv[3]) : 0;
  const struct {
    const char* name;
    void (*run)(bool, double);
  } locks[] = {{"d-mcs", run<lock::d_mcs>},
               {"rma-rw", run<lock::rma_rw>},
               {"flight", run<lock::flight>},
               {"flight-rw", run<lock::flight_rw>}};
  for (const auto& each : locks) {
    if (seconds <= 0 || std::strcmp(each.name, argv[2]) != 0) continue;
    try {
      each.run(on_ucx, seconds);
      return 0;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "own_node: %s\n", e.what());
      return 3;
    }
  }
  std::fputs("usage: own_node shm|ucx d-mcs|rma-rw|flight|flight-rw SECONDS\n", stderr);
  return 2;
}
