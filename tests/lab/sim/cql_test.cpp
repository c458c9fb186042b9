// cql and declock where the 32 bits that number the places of the queue wrap around. The checker's
// searches begin at place 0 and do not get there.
#include "lockflight/lock/cql.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "lab/sim/run.hpp"
#include "lockflight/lock/declock.hpp"
#include "lockflight/rma/participant.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/made_up_machine.hpp"

namespace lockflight::test {
namespace {

using cql = lock::cql<sim::port>;

using declock = lock::declock<sim::port>;

rma::nic_cell header_of(const cql::cells& cells) { return cells.header; }
rma::nic_cell header_of(const declock::cells& cells) { return cells.queue.header; }

/// All ranks acquire the lock, whose next place is `place`, a few times each. Half of the acquires
/// are shared.
template <class Lock>
void acquire_from_place(std::uint32_t place, const rma::topology& machine,
                        const typename Lock::parameters& set, bool ordered, std::uint64_t seed) {
  auto profile = made_up_machine();
  profile.jitter = 0.5;
  profile.nic.ordered_posts = ordered;
  int writers = 0;
  int readers = 0;
  sim::run_ports({.profile = profile, .machine = machine, .words_per_rank = 4096, .seed = seed},
                 [&](sim::port& port) {
                   rma::participant<sim::port> me(port, 4096);
                   const auto cells = Lock::cells::place(me.cells(), machine, set, 0);
                   Lock l(me, cells, set);
                   if (port.rank() == 0)
                     rma::put_now(port, header_of(cells),
                                  lock::cql_header{}.with(lock::cql_header::head, place).bits());
                   port.pause(100'000);
                   std::uint64_t chance = seed + static_cast<std::uint64_t>(port.rank()) * 977;
                   for (int i = 0; i < 6; ++i) {
                     chance = chance * 6364136223846793005U + 1442695040888963407U;
                     port.pause(chance >> 32U & 0x1fffU);
                     if ((chance >> 60U & 1U) != 0) {
                       l.lock();
                       require(writers++ == 0 && readers == 0, "a writer is alone");
                       port.pause(500);
                       --writers;
                       l.unlock();
                     } else {
                       l.lock_shared();
                       require(writers == 0, "a reader is in without a writer");
                       ++readers;
                       port.pause(500);
                       --readers;
                       l.unlock_shared();
                     }
                   }
                 });
}

template <class Lock>
void acquire_where_places_wrap_around(const rma::topology& machine,
                                      const typename Lock::parameters& set) {
  for (const bool ordered : {false, true})
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      SCOPED_TRACE(std::to_string(machine.ranks()) + " ranks, seed " + std::to_string(seed));
      EXPECT_NO_THROW(acquire_from_place<Lock>(0U - static_cast<std::uint32_t>(seed % 12), machine,
                                               set, ordered, seed));
    }
}

// Two waiters can share a slot there unless the number of ranks is a power of two. The own words of
// 9 ranks are read in two batches.
TEST(cql, excludes_where_places_wrap_around) {
  for (const int ranks : {3, 4, 5, 6, 9})
    for (const std::int64_t slot_reads : {0, 8})
      acquire_where_places_wrap_around<cql>(rma::topology::balanced({ranks, 1}),
                                            {.slot_reads = slot_reads});
}

TEST(declock, excludes_where_places_wrap_around) {
  for (const int nodes : {3, 4, 5})
    for (const std::int64_t handovers : {0, 4})
      acquire_where_places_wrap_around<declock>(rma::topology::balanced({nodes, 2}),
                                                {.handovers = handovers});
}

}  // namespace
}  // namespace lockflight::test
