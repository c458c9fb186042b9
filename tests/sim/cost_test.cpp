// What operations cost in virtual time, by the formulas of docs/simulator.md on a machine whose
// numbers are round. Times are in nanoseconds.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "lockflight/rma/participant.hpp"
#include "sim/run.hpp"
#include "support/made_up_machine.hpp"

namespace lockflight::test {
namespace {

using rma::cpu_cell;
using rma::nic_cell;
using rma::plain_cell;
using rma::word;
using sim::machine_profile;

// made_up_machine(), in nanoseconds.
constexpr double post = 100, complete = 30, receive_gap = 25, to_memory = 200, atomic = 50,
                 atomic_cell = 60, loopback = 500, way = 700 + 110, hit = 1, rmw = 10,
                 socket_transfer = 40, node_transfer = 90, dma_transfer = 70, send = 300,
                 receive = 400;

double ns(sim::time_ps t) { return static_cast<double>(t) * 1e-3; }

using port_list = std::map<rma::rank_t, std::function<void(sim::port&)>>;

/// Runs what each rank does; the others do nothing.
void play(const rma::topology& machine, const port_list& parts,
          const machine_profile& profile = made_up_machine()) {
  sim::run_ports({.profile = profile, .machine = machine, .words_per_rank = 4096},
                 [&](sim::port& p) {
                   if (const auto at = parts.find(p.rank()); at != parts.end()) at->second(p);
                 });
}

/// How long `body` takes rank 0 on `machine`.
double duration(const rma::topology& machine, const std::function<void(sim::port&)>& body,
                const machine_profile& profile = made_up_machine()) {
  double took = -1;
  play(machine,
       {{0,
         [&](sim::port& p) {
           const sim::time_ps begun = p.now();
           body(p);
           took = ns(p.now() - begun);
         }}},
       profile);
  return took;
}

const rma::topology two_nodes = rma::topology::balanced({2, 1});
constexpr plain_cell far{1, 8};
constexpr nic_cell far_nic{1, 16};

TEST(cost, of_a_get_is_a_round_trip) {
  const double expected = post + 2 * way + to_memory + complete;
  EXPECT_DOUBLE_EQ(duration(two_nodes, [](sim::port& p) { std::ignore = rma::get_now(p, far); }),
                   expected);
  EXPECT_DOUBLE_EQ(duration(two_nodes, [](sim::port& p) { rma::put_now(p, far, 1); }), expected);
}

TEST(cost, of_an_atomic_is_its_unit_more) {
  const double expected = post + 2 * way + to_memory + atomic + complete;
  EXPECT_DOUBLE_EQ(
      duration(two_nodes, [](sim::port& p) { std::ignore = rma::fetch_add_now(p, far_nic, 1); }),
      expected);
  EXPECT_DOUBLE_EQ(
      duration(two_nodes,
               [](sim::port& p) { std::ignore = rma::compare_swap_now(p, far_nic, 0, 1); }),
      expected);
}

TEST(cost, of_a_flush_of_nothing_is_nothing) {
  EXPECT_DOUBLE_EQ(duration(two_nodes, [](sim::port& p) { p.flush(); }), 0);
}

// The second is posted while the first is on its way, and comes as much later.
TEST(cost, of_operations_that_overlap_is_one_round_trip_and_a_post) {
  EXPECT_DOUBLE_EQ(duration(two_nodes,
                            [](sim::port& p) {
                              p.put(far, 1);
                              p.put(far, 2);
                              p.flush();
                            }),
                   2 * post + 2 * way + to_memory + complete);
}

TEST(cost, grows_with_hops) {
  auto profile = made_up_machine();
  profile.network.wiring = sim::shape::mesh;
  profile.network.dimensions = {1024};
  const auto five_nodes = rma::topology::balanced({5, 1});
  const double expected = post + 2 * (700 + 4 * 110) + to_memory + complete;
  EXPECT_DOUBLE_EQ(duration(
                       five_nodes,
                       [](sim::port& p) {
                         rma::put_now(p, plain_cell{4, 8}, 1);
                       },
                       profile),
                   expected);
}

TEST(cost, of_loopback_is_the_cards_own) {
  const auto one_node = rma::topology::flat(2);
  EXPECT_DOUBLE_EQ(duration(one_node, [](sim::port& p) { rma::put_now(p, far, 1); }),
                   post + 2 * loopback + to_memory + complete);
}

TEST(cost, of_loopback_grows_when_its_buffers_are_full) {
  auto profile = made_up_machine();
  profile.nic.loopback_slots = 1;
  profile.nic.loopback_congested = 1'000'000;
  const auto one_node = rma::topology::flat(2);
  EXPECT_DOUBLE_EQ(duration(
                       one_node,
                       [](sim::port& p) {
                         p.put(far, 1);
                         p.put(far, 2);
                         p.flush();
                       },
                       profile),
                   2 * post + 2 * (loopback + 1000) + to_memory + complete);
}

// n ranks on nodes of their own, one fetch-add each, at the same time: the unit takes them one
// after the other.
double last_of(int n, const std::function<nic_cell(int)>& target,
               const machine_profile& profile = made_up_machine()) {
  port_list parts;
  double last = 0;
  for (int r = 1; r <= n; ++r)
    parts[r] = [&last, &target, r](sim::port& p) {
      std::ignore = rma::fetch_add_now(p, target(r), 1);
      last = std::max(last, ns(p.now()));
    };
  play(rma::topology::balanced({n + 1, 1}), parts, profile);
  return last;
}
constexpr double one_atomic = post + 2 * way + to_memory + atomic + complete;

TEST(cost, atomics_on_one_cell_queue) {
  EXPECT_DOUBLE_EQ(last_of(10, [](int) { return nic_cell{0, 16}; }), one_atomic + 9 * atomic_cell);
}

TEST(cost, atomics_on_several_cells_queue_for_the_unit) {
  const auto apart = [](int r) { return nic_cell{0, static_cast<std::uint32_t>(16 + 8 * r)}; };
  EXPECT_DOUBLE_EQ(last_of(10, apart), one_atomic + 9 * atomic);
  auto profile = made_up_machine();
  profile.nic.atomic_engines = 10;
  // They still come in one after the other.
  EXPECT_DOUBLE_EQ(last_of(10, apart, profile), one_atomic + 9 * receive_gap);
}

TEST(cost, of_many_injections_is_the_gap) {
  auto profile = made_up_machine();
  profile.nic.gap = 1'000'000;
  const auto ten = [](sim::port& p) {
    for (int i = 0; i < 10; ++i) p.put(far, 1);
    p.flush();
  };
  const double expected = post + 9 * 1000 + 2 * way + to_memory + complete;
  EXPECT_DOUBLE_EQ(duration(two_nodes, ten, profile), expected);
  profile.nic.injection_engines = 10;
  EXPECT_DOUBLE_EQ(duration(two_nodes, ten, profile), 10 * post + 2 * way + to_memory + complete);
}

// With 4 contexts and 8 peers every second operation finds its own missing.
TEST(cost, of_connections_that_are_not_kept) {
  auto profile = made_up_machine();
  profile.nic.connections = 4;
  profile.nic.connection_miss = 5'000'000;
  double first = 0;
  double second = 0;
  play(rma::topology::balanced({9, 1}),
       {{0,
         [&](sim::port& p) {
           const auto round = [&] {
             const sim::time_ps begun = p.now();
             for (int r = 1; r <= 8; ++r) rma::put_now(p, plain_cell{r, 8}, 1);
             return ns(p.now() - begun);
           };
           round();
           first = round();
           second = round();
         }}},
       profile);
  const double without = 8 * (post + 2 * way + to_memory + complete);
  EXPECT_NEAR(first, without + 4 * 5000, 5001);
  EXPECT_DOUBLE_EQ(second, without + 4 * 5000);
}

// ---- processors ----

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

// Rank 0 writes a line that another core wrote last: of its socket, or of the other one.
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

// A waiter has the line, loses it to the writer, and gets it anew.
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

// ---- messages ----

TEST(cost, of_a_message_is_both_processors) {
  double got = 0;
  play(two_nodes, {{0,
                    [&](sim::port& p) {
                      std::ignore = p.receive();
                      got = ns(p.now());
                    }},
                   {1, [&](sim::port& p) {
                      p.send(0, {1, 2, 3});
                    }}});
  EXPECT_DOUBLE_EQ(got, send + way + to_memory + receive);
}

// ---- time ----

TEST(time, is_the_ranks_own) {
  EXPECT_DOUBLE_EQ(duration(two_nodes, [](sim::port& p) { p.pause(1'234); }), 1'234);
  EXPECT_DOUBLE_EQ(duration(two_nodes, [](sim::port& p) { p.compute_until(5'000'000); }), 5'000);
}

TEST(time, goes_on_in_a_pause_of_nothing) {
  EXPECT_GT(duration(two_nodes, [](sim::port& p) { p.pause(0); }), 0);
}

// The same seed, the same run; another seed, another one.
TEST(time, is_the_same_each_run) {
  const auto run = [](std::uint64_t seed) {
    auto profile = made_up_machine();
    profile.jitter = 0.2;
    std::vector<sim::time_ps> ends(16);
    const rma::topology machine = rma::topology::balanced({4, 4});
    sim::run_ports({.profile = profile, .machine = machine, .words_per_rank = 4096, .seed = seed},
                   [&](sim::port& p) {
                     for (int i = 0; i < 20; ++i)
                       std::ignore = rma::fetch_add_now(p, nic_cell{i % 16, 16}, 1);
                     ends[static_cast<std::size_t>(p.rank())] = p.now();
                   });
    return ends;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

}  // namespace
}  // namespace lockflight::test
