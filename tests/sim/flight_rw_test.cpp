// What flight-rw's writers wait for in virtual time.
#include "lockflight/lock/flight_rw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "lockflight/rma/participant.hpp"
#include "sim/run.hpp"
#include "support/made_up_machine.hpp"

namespace lockflight::test {
namespace {

using flight_rw = lock::flight_rw<sim::port>;

constexpr int ranks = 32;

using lock::flight_rw_parameters;
using work_of_a_rank = std::function<void(flight_rw&, sim::port&)>;

/// When the last rank of the machine has done this, in nanoseconds.
double time_on(const rma::topology& machine, const flight_rw_parameters& set,
               const work_of_a_rank& work) {
  const auto profile = made_up_machine();
  sim::time_ps last = 0;
  sim::run_ports({.profile = profile, .machine = machine, .words_per_rank = 4096},
                 [&](sim::port& port) {
                   rma::participant<sim::port> me(port, 4096);
                   flight_rw l(me, flight_rw::cells::place(me.cells(), machine, set, 0), set);
                   work(l, port);
                   last = std::max(last, port.now());
                 });
  return static_cast<double>(last) * 1e-3;
}
/// The same on one node.
double time_of(std::int64_t readers_turn, const work_of_a_rank& work) {
  return time_on(rma::topology::flat(ranks), {.readers_turn = readers_turn}, work);
}

constexpr std::int64_t as_seems_good = 0;
constexpr std::int64_t none = 1;

// One in 250 operations writes. The gates are closed for a write each if nobody waits.
TEST(flight_rw, writers_that_let_readers_come_first_close_the_gates_for_more_of_them) {
  const auto mostly_reads = [](flight_rw& l, sim::port& port) {
    for (int i = 0; i < 2'000; ++i) {
      const bool writes = (i + 17 * port.rank()) % 250 == 249;
      writes ? l.lock() : l.lock_shared();
      writes ? l.unlock() : l.unlock_shared();
    }
  };
  EXPECT_LT(time_of(as_seems_good, mostly_reads), 0.8 * time_of(none, mostly_reads));
}

TEST(flight_rw, a_writer_that_meets_nobody_waits_for_nobody) {
  constexpr int writes = 20;
  const auto one_writes = [](flight_rw& l, sim::port& port) {
    for (int i = 0; i < writes && port.rank() == 0; ++i) {
      l.lock();
      l.unlock();
      l.lock_shared();
      l.unlock_shared();
    }
  };
  constexpr double looks = 200;  // at some cells
  EXPECT_NEAR(time_of(as_seems_good, one_writes), time_of(none, one_writes), writes * looks);
}

// One writes while all others read, so that there is a deputy in each branch.
TEST(flight_rw, a_tree_of_gates_is_closed_and_opened_sooner) {
  const rma::topology many_nodes = rma::topology::balanced({256, 2});
  const auto writes_while_others_read = [&](std::int64_t branch) {
    bool is_done = false;
    const auto work = [&](flight_rw& l, sim::port& port) {
      if (port.rank() != 0) {
        while (!is_done) {
          l.lock_shared();
          l.unlock_shared();
        }
        return;
      }
      for (int i = 0; i < 5; ++i) {
        l.lock();
        l.unlock();
      }
      is_done = true;
    };
    return time_on(many_nodes, {.readers_turn = none, .branch = branch}, work);
  };
  constexpr std::int64_t by_the_writer = 1;
  const double flat = writes_while_others_read(by_the_writer);
  EXPECT_LT(writes_while_others_read(16), 0.7 * flat);
  EXPECT_LT(writes_while_others_read(as_seems_good), 0.7 * flat);
}

}  // namespace
}  // namespace lockflight::test
