// The exact costs of example-ticket.
#include <gtest/gtest.h>

#include "counts.hpp"
#include "tests/lab/check/example_ticket.hpp"

namespace lockflight::test {
namespace {

TEST(example_ticket_counts, uncontended) {
  uncontended<lock::example_ticket>(far_apart, [](rma::rank_t rank) -> both_costs {
    const std::uint64_t own = rank == 0 ? 1 : 0;  // rank 0 is the home
    return {.acquire = {.get = 1, .fetch_add = 1, .flush = 2, .loopback = 2 * own},
            .release = {.put = 1, .flush = 1, .loopback = own},
            .attempt = operation_counts{.get = 1, .cas = 1, .flush = 2, .loopback = 2 * own}};
  });
}

TEST(example_ticket_counts, failed_attempt) {
  on_every_rank(far_apart, [](counted_participant& me) {
    rma::barrier both(me);
    placed<lock::example_ticket> l(me);
    if (me.rank() == 0) l.lock.lock();
    both.arrive_and_wait();
    if (me.rank() == 1)
      costs(me, "failed try_lock", {.get = 1, .cas = 1, .flush = 2},
            [&] { require(!l.lock.try_lock(), "rank 0 has it"); });
  });
}

}  // namespace
}  // namespace lockflight::test
