// The costs of a processor's own accesses in virtual time: cache lines that move between cores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "costs.hpp"

namespace lockflight::test {
namespace {

TEST(cost, of_a_line_that_the_core_has_is_a_hit) {
  const cpu_cell own{0, 24};
  EXPECT_DOUBLE_EQ(duration(two_nodes,
                            [&](sim::port& p) {
                              std::ignore = p.load(own);
                              std::ignore = p.load(own);
                            }),
                   dma_transfer + 2 * hit);
  EXPECT_DOUBLE_EQ(duration(two_nodes,
                            [&](sim::port& p) {
                              std::ignore = p.cpu_fetch_add(own, 1);
                              std::ignore = p.cpu_fetch_add(own, 1);
                            }),
                   dma_transfer + 2 * rmw);
}

// They come at the same time, ten of them.
TEST(cost, of_lines_that_are_loaded_together_is_the_slowest) {
  const auto of = [](std::size_t lines) {
    return duration(two_nodes, [lines](sim::port& p) {
      std::vector<cpu_cell> from;
      for (std::size_t i = 0; i < lines; ++i)
        from.push_back({0, static_cast<std::uint32_t>(8 * (i + 3))});
      std::vector<word> seen(lines);
      rma::load_each(p, std::span<const cpu_cell>(from), std::span(seen));
    });
  };
  EXPECT_DOUBLE_EQ(of(1), dma_transfer + hit);
  EXPECT_DOUBLE_EQ(of(10), dma_transfer + 10 * hit);
  EXPECT_DOUBLE_EQ(of(11), 2 * dma_transfer + 11 * hit);
}

// Rank 0 writes a cache line that another core wrote last: of its socket, or of the other one.
double taken_from(rma::rank_t other) {
  const cpu_cell shared{0, 24};
  double took = 0;
  play(rma::topology::flat(64),
       {{other, [&](sim::port& p) { std::ignore = p.cpu_swap(shared, 1); }},
        {0, [&](sim::port& p) {
           p.pause(10'000);
           const sim::time_ps begun = p.now();
           std::ignore = p.cpu_swap(shared, 2);
           took = ns(p.now() - begun);
         }}});
  return took;
}

TEST(cost, of_a_line_from_another_core) {
  EXPECT_DOUBLE_EQ(taken_from(31), socket_transfer + rmw);
  EXPECT_DOUBLE_EQ(taken_from(32), node_transfer + rmw);
}

TEST(cost, of_an_atomic_that_many_cores_want_is_a_transfer_each) {
  const cpu_cell shared{0, 24};
  port_list parts;
  double last = 0;
  for (int r = 0; r < 8; ++r)
    parts[r] = [&](sim::port& p) {
      std::ignore = p.cpu_fetch_add(shared, 1);
      last = std::max(last, ns(p.now()));
    };
  play(rma::topology::flat(8), parts);
  EXPECT_DOUBLE_EQ(last, dma_transfer + 7 * socket_transfer + 8 * rmw);
}

// A waiter has the cache line, loses it to the writer, and fetches it again.
TEST(cost, of_waking_up_is_a_transfer) {
  const plain_cell flag{0, 32};
  double written = 0;
  double seen = 0;
  play(rma::topology::flat(2), {{0,
                                 [&](sim::port& p) {
                                   std::ignore = p.await(flag, rma::equals(1));
                                   seen = ns(p.now());
                                 }},
                                {1, [&](sim::port& p) {
                                   p.pause(5'000);
                                   p.store(flag, 1);
                                   written = ns(p.now());
                                 }}});
  EXPECT_DOUBLE_EQ(seen, written + socket_transfer + hit);
}

TEST(cost, of_waking_up_by_the_network_is_what_it_wrote) {
  const plain_cell flag{0, 32};
  double seen = 0;
  play(two_nodes, {{0,
                    [&](sim::port& p) {
                      std::ignore = p.await(flag, rma::equals(1));
                      seen = ns(p.now());
                    }},
                   {1, [&](sim::port& p) { rma::put_now(p, flag, 1); }}});
  EXPECT_DOUBLE_EQ(seen, post + way + to_memory + dma_transfer + hit);
}

}  // namespace
}  // namespace lockflight::test
