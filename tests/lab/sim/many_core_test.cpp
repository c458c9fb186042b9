// The costs of memory on a many-core without coherent caches, in virtual time. Nodes 0 to 2 of a
// row are 0 to 2 hops from controller 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "costs.hpp"

namespace lockflight::test {
namespace {

constexpr double controller = 20, read_time = 150;
constexpr double way_of(int hops) { return 700 + hops * 110.0; }
constexpr double reading(int hops) { return 2 * way_of(hops) + read_time; }
constexpr double writing(int hops) { return 2 * way_of(hops) + controller; }
const rma::topology three_cores = rma::topology::balanced({3, 1});

/// How long core 0 takes to get a word of a core.
double get_from(rma::rank_t home, const machine_profile& profile) {
  return duration(
      three_cores,
      [home](sim::port& p) {
        std::ignore = rma::get_now(p, plain_cell{home, 8});
      },
      profile);
}

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
  EXPECT_DOUBLE_EQ(get_from(2, profile), post + 2 * reading(0) + complete);
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
  EXPECT_DOUBLE_EQ(get_from(0, profile), post + 2 * reading(1) + complete);
  EXPECT_DOUBLE_EQ(get_from(2, profile), post + 2 * reading(2) + complete);
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

// Cores 1 and 2 want the register of core 0 while core 0 has it, and ask again and again: the first
// that asks after the reset has it, core 1 here, and core 2 after that.
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

// n waiting cores poll through the controller all the time. They saturate it if n times
// `controller` is longer than a round of one core, and then every access waits for theirs.
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
  // In a full queue each core is served once a round.
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

// ---- the ports of tiles ----

machine_profile with_ports() {
  auto profile = made_up_many_core();
  profile.network.hop = 0;
  profile.memory.tile_nodes = 2;
  profile.memory.port = 100'000;
  return profile;
}
constexpr double port = 100;

// Its passages are part of the way.
TEST(many_core, a_port_that_nobody_else_uses_costs_nothing) {
  const auto way_of_all = [](const machine_profile& profile) {
    return duration(
        three_cores,
        [](sim::port& p) {
          for (int i = 0; i < 3; ++i) {
            p.store(plain_cell{0, 8}, 1);
            rma::put_now(p, plain_cell{2, 8}, 1);
            std::ignore = rma::fetch_add_now(p, nic_cell{2, 16}, 1);
          }
        },
        profile);
  };
  auto without = with_ports();
  without.memory.port = 0;
  EXPECT_DOUBLE_EQ(way_of_all(with_ports()), way_of_all(without));
}

// Cores 0 and 1 share a tile, and core 2 does not: the request of core 1 waits for that of core 0.
TEST(many_core, the_cores_of_a_tile_share_a_port) {
  std::map<int, double> done;
  port_list parts;
  for (int r = 0; r < 3; ++r)
    parts[r] = [&done, r](sim::port& p) {
      p.store(plain_cell{r, 8}, 1);
      done[r] = ns(p.now());
    };
  auto profile = with_ports();
  profile.memory.controller = 1;
  play(three_cores, parts, profile);
  EXPECT_NEAR(done[0], hit + 2 * 700, 0.1);
  EXPECT_NEAR(done[1], hit + port + 2 * 700, 0.1);
  EXPECT_NEAR(done[2], hit + 2 * 700, 0.1);
}

// The owner of a register that n cores ask for waits at its port for their requests and the answers
// to them; so does the other core of its tile, and no other core.
double a_write_beside_askers(int n, rma::rank_t writer) {
  auto profile = with_ports();
  profile.memory.read = 1'000'000'000;  // a holder of the register has it for a millisecond
  constexpr int writes = 100;
  double took = 0;
  port_list parts;
  for (int r = 4; r < 4 + n; ++r)
    parts[r] = [](sim::port& p) { std::ignore = rma::fetch_add_now(p, nic_cell{0, 16}, 1); };
  parts[writer] = [&](sim::port& p) {
    p.pause(100'000);
    const sim::time_ps begun = p.now();
    for (int i = 0; i < writes; ++i) p.store(plain_cell{writer, 8}, 1);
    took = ns(p.now() - begun) / writes;
  };
  play(rma::topology::balanced({n + 4, 1}), parts, profile);
  return took;
}

TEST(many_core, those_who_ask_for_a_register_load_the_port_of_its_tile) {
  constexpr double alone = hit + writing(0);
  EXPECT_DOUBLE_EQ(a_write_beside_askers(0, 0), alone);
  EXPECT_DOUBLE_EQ(a_write_beside_askers(1, 0), alone);
  // One of the cores has the register. In a full queue the others are served twice a round each.
  EXPECT_NEAR(a_write_beside_askers(41, 0), 41 * 2 * port, 3 * port);
  EXPECT_NEAR(a_write_beside_askers(41, 1), 41 * 2 * port, 3 * port);
  EXPECT_DOUBLE_EQ(a_write_beside_askers(41, 2), alone);
}

// The reset waits at the port, and everyone has the register in the end.
TEST(many_core, a_full_port_delays_the_reset_of_a_register) {
  constexpr int n = 40;
  const auto last_with = [](sim::time_ps port_time) {
    auto profile = with_ports();
    profile.memory.port = port_time;
    double last = 0;
    port_list parts;
    for (int r = 2; r < 2 + n; ++r)
      parts[r] = [&last](sim::port& p) {
        std::ignore = rma::fetch_add_now(p, nic_cell{0, 16}, 1);
        last = std::max(last, ns(p.now()));
      };
    play(rma::topology::balanced({n + 2, 1}), parts, profile);
    return last;
  };
  const double held = 2 * 700 + reading(0) + writing(0);
  EXPECT_NEAR(last_with(0), n * held, n * 1400.0);
  // With m askers left, the answer to the new holder and its reset wait for m passages or so.
  EXPECT_GT(last_with(100'000), last_with(0) + n / 2.0 * n * port);
}

}  // namespace
}  // namespace lockflight::test
