// What flight-rw's writers wait for in virtual time.
#include "lockflight/lock/flight_rw.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lab/sim/run.hpp"
#include "lockflight/rma/participant.hpp"
#include "tests/support/made_up_machine.hpp"

namespace lockflight::test {
namespace {

using flight_rw = lock::flight_rw<sim::port>;

/// When rank 0 of the machine has written so often, in nanoseconds, after the ranks of `readers`
/// nodes have read.
double time_to_write(const rma::topology& machine, int writes, int readers) {
  const auto profile = made_up_machine();
  double took = 0;
  sim::run_ports({.profile = profile, .machine = machine, .words_per_rank = 4096},
                 [&](sim::port& port) {
                   rma::participant<sim::port> me(port, 4096);
                   flight_rw l(me, flight_rw::cells::place(me.cells(), machine, {}, 0), {});
                   if (machine.node_of(port.rank()) < readers) {
                     l.lock_shared();
                     l.unlock_shared();
                   }
                   port.pause(100'000);  // until all have
                   if (port.rank() != 0) return;
                   const sim::time_ps began = port.now();
                   for (int i = 0; i < writes; ++i) {
                     l.lock();
                     l.unlock();
                   }
                   took = static_cast<double>(port.now() - began) * 1e-3;
                 });
  return took;
}

// Gates of nodes that are not listed are left alone: a writer pays for the nodes that read, and not
// for the machine.
TEST(flight_rw, a_writer_pays_for_the_nodes_that_read) {
  const double small = time_to_write(rma::topology::balanced({4, 2}), 1, 2);
  const double large = time_to_write(rma::topology::balanced({48, 2}), 1, 2);
  EXPECT_NEAR(large, small, 0.05 * small);
  EXPECT_GT(time_to_write(rma::topology::balanced({48, 2}), 1, 48), 1.5 * large);
}

// After two phases that met no reader the gates are idle, and a write costs what flight costs.
TEST(flight_rw, writers_alone_pay_for_flight) {
  const rma::topology machine = rma::topology::balanced({8, 2});
  const double two = time_to_write(machine, 2, 8);
  const double ten = time_to_write(machine, 10, 8);
  EXPECT_LT((ten - two) / 8, 0.1 * two / 2);
}

}  // namespace
}  // namespace lockflight::test
