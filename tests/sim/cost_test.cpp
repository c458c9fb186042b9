// What operations cost in virtual time, by the formulas of docs/simulator.md on a machine whose
// numbers are round. Times are in nanoseconds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

// ---- posts that keep their order ----

machine_profile ordered_machine() {
  auto profile = made_up_machine();
  profile.nic.ordered_posts = true;
  return profile;
}

// The get comes in right behind the swap, and waits at the card until that has taken effect.
TEST(ordered_posts, an_atomic_and_a_get_share_a_round_trip) {
  const auto swap_and_look = [](sim::port& p) {
    word before = 0;
    word seen = 0;
    p.swap(far_nic, 1, before);
    p.get(far, seen);
    p.flush(far.home);
  };
  const double one_round = post + 2 * way + to_memory + complete;
  auto profile = ordered_machine();
  profile.nic.atomic = 400'000;  // longer than a post
  EXPECT_DOUBLE_EQ(duration(two_nodes, swap_and_look, profile), one_round + 400);
  profile.nic.ordered_posts = false;
  EXPECT_DOUBLE_EQ(duration(two_nodes, swap_and_look, profile), one_round + 400);
  profile.nic.atomic = 50'000;  // shorter, so the get is the last to come, and nobody waits
  EXPECT_DOUBLE_EQ(duration(two_nodes, swap_and_look, profile), one_round + post);
  profile.nic.ordered_posts = true;
  EXPECT_DOUBLE_EQ(duration(two_nodes, swap_and_look, profile), one_round + post);
}

/// How often a get that is posted right after an operation to the same rank misses what that did.
int missed_by_gets(machine_profile profile) {
  int missed = 0;
  profile.jitter = 0.3;
  play(two_nodes,
       {{0,
         [&](sim::port& p) {
           for (word i = 1; i <= 200; ++i) {
             word before = 0;
             word seen = 0;
             if (i % 2 == 0)
               p.swap(far_nic, i, before);
             else
               p.put(far_nic, i);
             p.get(far_nic, seen);
             p.flush();
             missed += seen != i ? 1 : 0;
           }
         }}},
       profile);
  return missed;
}

TEST(ordered_posts, take_effect_in_order_where_the_machine_says_so) {
  EXPECT_EQ(missed_by_gets(ordered_machine()), 0);
  EXPECT_GT(missed_by_gets(made_up_machine()), 0);
  // Several engines, connections that are fetched, and a unit that takes long.
  auto profile = ordered_machine();
  profile.nic.injection_engines = 4;
  profile.nic.connections = 1;
  profile.nic.connection_miss = 900'000;
  profile.nic.atomic = 2'000'000;
  EXPECT_EQ(missed_by_gets(profile), 0);
  profile = ordered_machine();
  profile.network = made_up_torus().network;
  EXPECT_EQ(missed_by_gets(profile), 0);
  auto many_core = made_up_many_core();
  EXPECT_EQ(missed_by_gets(many_core), 0);
}

TEST(ordered_posts, are_what_the_port_says) {
  for (const bool ordered : {false, true}) {
    auto profile = made_up_machine();
    profile.nic.ordered_posts = ordered;
    std::ignore = duration(
        two_nodes, [&](sim::port& p) { EXPECT_EQ(rma::orders_posts(p), ordered); }, profile);
  }
}

// A flush of one target leaves the order of those to another one as it was.
TEST(ordered_posts, survive_a_flush_in_between) {
  auto profile = ordered_machine();
  profile.jitter = 0.3;
  const auto three_nodes = rma::topology::balanced({3, 1});
  int missed = 0;
  play(three_nodes,
       {{0,
         [&](sim::port& p) {
           for (word i = 1; i <= 100; ++i) {
             word before = 0;
             word seen = 0;
             p.put(plain_cell{2, 8}, i);
             p.swap(far_nic, i, before);
             p.get(far_nic, seen);
             p.flush(2);
             p.flush();
             missed += seen != i ? 1 : 0;
           }
         }}},
       profile);
  EXPECT_EQ(missed, 0);
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

// ---- a many-core: nodes 0 to 2 of a row are 0 to 2 hops from controller 0 ----

constexpr double controller = 20, read_time = 150;
constexpr double way_of(int hops) { return 700 + hops * 110.0; }
constexpr double reading(int hops) { return 2 * way_of(hops) + read_time; }
constexpr double writing(int hops) { return 2 * way_of(hops) + controller; }
const rma::topology three_cores = rma::topology::balanced({3, 1});

TEST(many_core, a_read_waits_for_memory_and_a_write_only_for_the_controller) {
  const auto profile = made_up_many_core();
  EXPECT_DOUBLE_EQ(duration(
                       three_cores,
                       [](sim::port& p) {
                         std::ignore = p.load(plain_cell{0, 8});
                       },
                       profile),
                   hit + reading(0));
  EXPECT_DOUBLE_EQ(duration(
                       three_cores,
                       [](sim::port& p) {
                         p.store(plain_cell{0, 8}, 1);
                       },
                       profile),
                   hit + writing(0));
  // Twice, since a word takes two accesses, and again no cache holds it.
  EXPECT_DOUBLE_EQ(duration(
                       three_cores,
                       [](sim::port& p) {
                         std::ignore = rma::get_now(p, plain_cell{2, 8});
                       },
                       profile),
                   post + 2 * reading(0) + complete);
  EXPECT_DOUBLE_EQ(duration(
                       three_cores,
                       [](sim::port& p) {
                         for (int i = 0; i < 5; ++i) p.put(plain_cell{2, 8}, 1);
                         p.flush();
                         p.flush();
                       },
                       profile),
                   5 * (post + 2 * writing(0)) + complete);
}

// The controller is the one nearest to the home, however far the core is from it.
TEST(many_core, the_way_is_to_the_controller_of_the_home) {
  auto profile = made_up_many_core();
  profile.memory.controllers = {1, 2};
  EXPECT_DOUBLE_EQ(duration(
                       three_cores,
                       [](sim::port& p) {
                         std::ignore = rma::get_now(p, plain_cell{0, 8});
                       },
                       profile),
                   post + 2 * reading(1) + complete);
  EXPECT_DOUBLE_EQ(duration(
                       three_cores,
                       [](sim::port& p) {
                         std::ignore = rma::get_now(p, plain_cell{2, 8});
                       },
                       profile),
                   post + 2 * reading(2) + complete);
}

TEST(many_core, an_atomic_is_a_read_and_a_write_between_two_ways_to_the_register) {
  const auto profile = made_up_many_core();
  const double expected = 2 * way_of(2) + reading(0) + writing(0) + 2 * way_of(2);
  EXPECT_DOUBLE_EQ(duration(
                       three_cores,
                       [](sim::port& p) {
                         std::ignore = rma::fetch_add_now(p, nic_cell{2, 16}, 1);
                       },
                       profile),
                   post + expected + complete);
  EXPECT_DOUBLE_EQ(duration(
                       three_cores,
                       [](sim::port& p) {
                         std::ignore = p.cpu_swap(cpu_cell{0, 24}, 1);
                       },
                       profile),
                   rmw + 2 * way_of(0) + reading(0) + writing(0) + 2 * way_of(0));
}

// Cores 1 and 2 want the register of core 0 while core 0 has it, and ask again and again: whoever
// asks first after the reset has it, core 1 here, and core 2 after that.
TEST(many_core, whoever_asks_first_after_a_reset_has_the_register) {
  std::map<int, double> done;
  port_list parts;
  for (int r = 0; r < 3; ++r)
    parts[r] = [&done, r](sim::port& p) {
      p.pause(static_cast<std::uint64_t>(1 + r));
      std::ignore = rma::fetch_add_now(p, nic_cell{0, 16}, 1);
      done[r] = ns(p.now());
    };
  play(three_cores, parts, made_up_many_core());
  const auto held = [](int hops) { return 2 * way_of(hops) + reading(hops) + writing(hops); };
  const auto asked_after = [](double first, double period, double reset) {
    return first + std::ceil((reset - first) / period) * period;
  };
  const double reset_0 = 1 + post + way_of(0) + held(0);
  EXPECT_DOUBLE_EQ(done[0], reset_0 + way_of(0) + complete);
  const double got_1 = asked_after(2 + post + way_of(1), 2 * way_of(1), reset_0);
  EXPECT_LT(got_1, asked_after(3 + post + way_of(2), 2 * way_of(2), reset_0));
  const double reset_1 = got_1 + held(1);
  EXPECT_DOUBLE_EQ(done[1], reset_1 + way_of(1) + complete);
  const double got_2 = asked_after(3 + post + way_of(2), 2 * way_of(2), reset_1);
  EXPECT_DOUBLE_EQ(done[2], got_2 + held(2) + way_of(2) + complete);
}

TEST(many_core, accesses_queue_at_their_controller) {
  port_list parts;
  double last = 0;
  for (int r = 0; r < 10; ++r)
    parts[r] = [&](sim::port& p) {
      std::ignore = p.load(plain_cell{p.rank(), 8});
      last = std::max(last, ns(p.now()));
    };
  auto profile = made_up_many_core();
  profile.network.hop = 0;
  play(rma::topology::balanced({10, 1}), parts, profile);
  EXPECT_DOUBLE_EQ(last, hit + 2 * 700 + 9 * controller + read_time);
}

// n cores that wait look at the controller all the time. They fill it if n times `controller` is
// longer than one's round, and then everybody's access waits for theirs.
double a_write_beside(int n) {
  auto profile = made_up_many_core();
  profile.network.hop = 0;
  profile.memory.controller = 200'000;
  constexpr int writes = 100;
  double took = 0;
  port_list parts;
  for (int r = 1; r <= n; ++r)
    parts[r] = [](sim::port& p) {
      std::ignore = p.await(plain_cell{p.rank(), 32}, rma::equals(1));
    };
  parts[0] = [&](sim::port& p) {
    p.pause(1'000'000);
    const sim::time_ps begun = p.now();
    for (int i = 0; i < writes; ++i) p.store(plain_cell{0, 8}, 1);
    took = ns(p.now() - begun) / writes;
    for (int r = 1; r <= n; ++r) rma::put_now(p, plain_cell{r, 32}, 1);
  };
  play(rma::topology::balanced({n + 1, 1}), parts, profile);
  return took;
}

TEST(many_core, those_who_wait_load_their_controller) {
  constexpr double alone = hit + 2 * 700 + 200;
  EXPECT_DOUBLE_EQ(a_write_beside(0), alone);
  EXPECT_LT(a_write_beside(2), alone + 400);
  // In a full queue each has one turn a round.
  EXPECT_NEAR(a_write_beside(19), 20 * 200, 20);
  EXPECT_NEAR(a_write_beside(39), 40 * 200, 20);
}

TEST(many_core, whoever_waits_sees_a_write_with_the_next_of_its_reads) {
  auto profile = made_up_many_core();
  const plain_cell flag{1, 32};
  double written = 0;
  double seen = 0;
  play(three_cores,
       {{1,
         [&](sim::port& p) {
           std::ignore = p.await(flag, rma::equals(1));
           seen = ns(p.now());
         }},
        {0,
         [&](sim::port& p) {
           p.pause(20'000);
           rma::put_now(p, flag, 1);
           written = ns(p.now()) - complete - controller - way_of(0);
         }}},
       profile);
  EXPECT_GE(seen, written + read_time + way_of(1));
  EXPECT_LE(seen, written + hit + 2 * reading(1));
}

// ---- links ----

TEST(links, an_operation_waits_for_those_that_left_before_on_each_link) {
  auto profile = made_up_torus();
  profile.network.link_gap = 1'000'000;
  profile.network.arbiter = sim::arbitration::arrival;
  const auto ten = [](sim::port& p) {
    for (int i = 0; i < 10; ++i) p.put(far, 1);
    p.flush();
  };
  // They go out one a microsecond, and their answers come back as they went.
  EXPECT_DOUBLE_EQ(duration(two_nodes, ten, profile),
                   post + 9 * 1000 + 2 * way + to_memory + complete);
  // Not on the way to somebody else: nodes 1 and 7 are on both sides.
  const auto both_ways = [](sim::port& p) {
    p.put(plain_cell{1, 8}, 1);
    p.put(plain_cell{7, 8}, 1);
    p.flush();
  };
  EXPECT_DOUBLE_EQ(duration(rma::topology::balanced({8, 1}), both_ways, profile),
                   2 * post + 2 * way + to_memory + complete);
}

// Four ranks on each of nodes 1 to 3 of a ring send to node 0 over the same link: nodes 2 and 3
// share an input of node 1's router with each other, node 1 has one for itself.
std::map<int, double> ends_of_a_row(sim::arbitration arbiter) {
  constexpr int ranks_a_node = 4;
  auto profile = made_up_torus();
  profile.network.link_gap = 0;
  profile.network.arbiter = arbiter;
  profile.nic.atomic = profile.nic.atomic_cell = 10'000'000;
  std::map<int, double> done;
  port_list parts;
  for (int r = ranks_a_node; r < 4 * ranks_a_node; ++r)
    parts[r] = [&done, r](sim::port& p) {
      for (int i = 0; i < 40; ++i) std::ignore = rma::fetch_add_now(p, nic_cell{0, 16}, 1);
      double& last = done[r / ranks_a_node];
      last = std::max(last, ns(p.now()) / 10'000);  // in turns of the atomic unit
    };
  play(rma::topology::balanced({8, ranks_a_node}), parts, profile);
  return done;
}

TEST(links, first_come_first_served_is_fair) {
  const auto done = ends_of_a_row(sim::arbitration::arrival);
  for (const auto& [node, turn] : done) EXPECT_NEAR(turn, 480, 12) << node;
}

TEST(links, turns_at_each_router_favour_those_who_are_near) {
  auto done = ends_of_a_row(sim::arbitration::turns);
  EXPECT_NEAR(done[1], 320, 12);  // every second turn until then
  EXPECT_NEAR(done[2], 480, 12);
  EXPECT_NEAR(done[3], 480, 12);
}

// The unit works all the time, whoever's turn it is.
TEST(links, turns_cost_nothing_in_all) {
  const auto far_ones = [](int) { return nic_cell{0, 16}; };
  auto profile = made_up_torus();
  profile.network.link_gap = 0;
  profile.network.hop = 0;
  const double turns = last_of(7, far_ones, profile);
  profile.network.arbiter = sim::arbitration::arrival;
  EXPECT_DOUBLE_EQ(turns, last_of(7, far_ones, profile));
}

// ---- cores that are shared ----

// A machine with one core a node and slices of 10 us: with n others the rank has every (n + 1)-th.
double served_beside(std::uint32_t others, std::uint32_t cores = 1) {
  auto profile = made_up_machine();
  profile.cores = cores;
  profile.sockets = 1;
  profile.cpu.slice = 10'000'000;
  constexpr int messages = 1'000;
  double took = 0;
  play(two_nodes,
       {{0,
         [&](sim::port& p) {
           p.share_core(others);
           for (int i = 0; i < messages; ++i) std::ignore = p.receive();
           took = ns(p.now()) / messages;
         }},
        {1,
         [&](sim::port& p) {
           for (int i = 0; i < messages; ++i) p.send(0, {1, 2, 3});
         }}},
       profile);
  return took;
}

TEST(slices, are_taken_in_turn_with_the_others) {
  EXPECT_NEAR(served_beside(0), receive, 5);
  EXPECT_NEAR(served_beside(1), 2 * receive, 20);
  EXPECT_NEAR(served_beside(3), 4 * receive, 40);
}

TEST(slices, are_not_cut_where_there_are_cores_enough) {
  EXPECT_NEAR(served_beside(1, 2), receive, 5);
  EXPECT_NEAR(served_beside(2, 2), 1.5 * receive, 15);
}

// Whoever waits looks for it all the time, so that the answer is found in its next slice.
TEST(slices, a_wait_ends_in_a_slice_of_the_own) {
  auto profile = made_up_machine();
  profile.cores = 1;
  profile.sockets = 1;
  profile.cpu.slice = 10'000'000;
  double got = 0;
  play(two_nodes,
       {{0,
         [&](sim::port& p) {
           p.share_core(1);
           std::ignore = p.receive();
           got = ns(p.now());
         }},
        {1,
         [](sim::port& p) {
           p.pause(12'000);
           p.send(0, {1, 2, 3});
         }}},
       profile);
  EXPECT_DOUBLE_EQ(got, 20'000 + receive);
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
