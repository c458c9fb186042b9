// With more ranks than cores a store has a fence only once ranks sleep often.
#include <gtest/gtest.h>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/rma/barrier.hpp"
#include "support.hpp"

namespace lockflight::test {
namespace {

using participant = rma::participant<shm::port>;

/// Two ranks that pass a number back and forth, and sleep each time; whether their stores have
/// fences in the end. `processors`: as many as the run is to assume.
[[nodiscard]] bool fenced_after(rma::word turns, bool threads, int processors,
                                std::uint64_t pause_ns = 0) {
  bool fenced = false;
  const auto start = clock::now();
  shm::run({.machine = rma::topology::flat(2),
            .threads = threads,
            .waiting = "park",
            .processors = processors},
           [&](participant& me) {
             const auto ball = me.cells().take<rma::plain_cell>(1);
             const rma::rank_t other = 1 - me.rank();
             for (rma::word turn = 1; turn <= turns; ++turn) {
               if (me.rank() == 1) me.port().await(ball.at(1), rma::equals(turn));
               if (pause_ns != 0) me.port().pause(pause_ns);
               me.port().store(ball.at(other), turn);
               if (me.rank() == 0) me.port().await(ball.at(0), rma::equals(turn));
             }
             rma::barrier(me).arrive_and_wait();
             if (me.rank() == 0) fenced = me.port().stores_are_fenced();
           });
  // A wake-up that is lost costs a tenth of a second.
  EXPECT_LT(clock::now() - start, long_enough);
  return fenced;
}

TEST(fences, come_when_ranks_sleep_often) {
  EXPECT_TRUE(fenced_after(5'000, /*threads=*/true, /*processors=*/1));
  EXPECT_FALSE(fenced_after(10, true, 1)) << "too few to know";
  EXPECT_FALSE(fenced_after(5'000, true, 2)) << "each rank has a core";
  constexpr std::uint64_t two_ms = 2'000'000;
  EXPECT_FALSE(fenced_after(100, true, 1, two_ms)) << "less than once in a millisecond";
}

// In the ranks' processes, too, each sleeper is woken while the fences begin.
TEST(fences, begin_while_ranks_sleep) {
  for (int i = 0; i < 5; ++i) static_cast<void>(fenced_after(2'000, /*threads=*/false, 1));
}

}  // namespace
}  // namespace lockflight::test
