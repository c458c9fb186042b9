// The costs of network operations and messages in virtual time, and properties of virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "costs.hpp"

namespace lockflight::test {
namespace {

TEST(cost, of_a_get_is_a_round_trip) {
  const double expected = post + 2 * way + to_memory + complete;
  EXPECT_DOUBLE_EQ(duration(two_nodes, [](sim::port& p) { std::ignore = rma::get_now(p, far); }),
                   expected);
  EXPECT_DOUBLE_EQ(duration(two_nodes, [](sim::port& p) { rma::put_now(p, far, 1); }), expected);
}

// An immediate value delays the effect of a put, and so its completion.
TEST(cost, of_a_put_may_be_that_of_an_immediate_value) {
  auto profile = made_up_machine();
  profile.nic.put = 321'000;
  const double without = post + 2 * way + to_memory + complete;
  EXPECT_DOUBLE_EQ(duration(
                       two_nodes, [](sim::port& p) { rma::put_now(p, far, 1); }, profile),
                   without + 321);
  EXPECT_DOUBLE_EQ(
      duration(
          two_nodes, [](sim::port& p) { std::ignore = rma::get_now(p, far); }, profile),
      without);
}

// One request, one read of memory; the bytes between the words of the answer come with them.
TEST(cost, of_a_get_of_lines_is_a_round_trip_and_their_bytes) {
  auto profile = made_up_machine();
  profile.network.byte_ps = 125;
  constexpr double word_time = 8 * 0.125;
  const auto of = [&](std::size_t lines) {
    return duration(
        two_nodes,
        [&](sim::port& p) {
          std::vector<word> seen(lines);
          rma::get_lines(p, far, std::span(seen));
          p.flush();
        },
        profile);
  };
  const double one = post + 2 * (way + word_time) + to_memory + complete;
  EXPECT_DOUBLE_EQ(of(1), one);
  EXPECT_DOUBLE_EQ(of(4), one + 3 * 8 * word_time);
}

// The bytes of several answers come in one after another, from wherever they are.
TEST(cost, of_gets_of_lines_adds_up_at_who_asks) {
  auto profile = made_up_machine();
  profile.network.byte_ps = 1'250;
  constexpr double word_time = 8 * 1.25;
  const auto of = [&](rma::rank_t second) {
    return duration(
        rma::topology::balanced({3, 1}),
        [&](sim::port& p) {
          std::vector<word> seen(8);
          rma::get_lines(p, rma::cpu_cell{1, 8}, std::span(seen).first(4));
          rma::get_lines(p, rma::cpu_cell{second, 8}, std::span(seen).last(4));
          p.flush();
        },
        profile);
  };
  const double one = post + 2 * (way + word_time) + to_memory + complete;
  EXPECT_DOUBLE_EQ(of(2), one + 2 * 3 * 8 * word_time);
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

/// How long rank 0 takes to put to each rank in turn once more, having done so twice.
double third_round(const rma::topology& machine, const std::vector<int>& to,
                   const sim::machine_profile& profile) {
  double took = 0;
  play(machine,
       {{0,
         [&](sim::port& p) {
           for (int round = 0; round < 3; ++round) {
             const sim::time_ps begun = p.now();
             for (const int r : to) rma::put_now(p, plain_cell{r, 8}, 1);
             took = ns(p.now() - begun);
           }
         }}},
       profile);
  return took;
}

// A card that keeps as many contexts as there are connections has no miss, and with half of them
// every second operation has one. So these count the connections.
TEST(cost, of_connections_counts_pairs_of_ranks) {
  auto profile = made_up_machine();
  profile.nic.connection_miss = 5'000'000;
  const double of_a_put = post + 2 * way + to_memory + complete;
  const auto misses = [&](const rma::topology& machine, const std::vector<int>& to, double without,
                          std::uint32_t kept) {
    profile.nic.connections = kept;
    return (third_round(machine, to, profile) - without) / 5000;
  };
  // Two ranks of each of four other nodes: eight, not four.
  const auto pairs = rma::topology::balanced({5, 2});
  const std::vector<int> others{2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_DOUBLE_EQ(misses(pairs, others, 8 * of_a_put, 8), 0);
  EXPECT_DOUBLE_EQ(misses(pairs, others, 8 * of_a_put, 4), 4);
  // Within the node both ends are at the card: four contexts of two connections, and every put
  // needs two of them.
  const auto one_node = rma::topology::balanced({1, 4});
  const double of_loopback = post + 2 * loopback + to_memory + complete;
  EXPECT_DOUBLE_EQ(misses(one_node, {1, 2}, 2 * of_loopback, 4), 0);
  EXPECT_DOUBLE_EQ(misses(one_node, {1, 2}, 2 * of_loopback, 2), 2);
}

// The card of the target misses too: eight ranks put to rank 0 one after the other.
TEST(cost, of_connections_at_the_card_of_the_target) {
  auto profile = made_up_machine();
  profile.nic.connections = 4;
  profile.nic.connection_miss = 5'000'000;
  std::vector<double> took(9);
  port_list parts;
  for (int r = 1; r <= 8; ++r)
    parts[r] = [&took, r](sim::port& p) {
      for (int round = 0; round < 2; ++round) {
        p.pause(static_cast<std::uint64_t>(1'000'000 * (round + 1) + 20'000 * r) -
                static_cast<std::uint64_t>(ns(p.now())));
        const sim::time_ps begun = p.now();
        rma::put_now(p, plain_cell{0, 8}, 1);
        took[static_cast<std::size_t>(r)] = ns(p.now() - begun);
      }
    };
  play(rma::topology::balanced({9, 1}), parts, profile);
  const double without = post + 2 * way + to_memory + complete;
  double misses = 0;
  for (int r = 1; r <= 8; ++r) misses += (took[static_cast<std::size_t>(r)] - without) / 5000;
  EXPECT_DOUBLE_EQ(misses, 4);
}

// "With 8 threads and 10 nodes, the RNIC already needs to maintain 1280 QPs": section 6.2 of the
// ALock paper.
TEST(cost, of_the_connections_that_the_alock_paper_counts) {
  const auto misses_with = [](std::uint32_t kept) {
    auto profile = made_up_machine();
    profile.nic.connections = kept;
    profile.nic.connection_miss = 1'000'000'000'000;  // a second
    double last = 0;
    port_list parts;
    for (int me = 0; me < 80; ++me)
      parts[me] = [&last](sim::port& p) {
        for (int round = 0; round < 3; ++round)
          for (int r = 0; r < 80; ++r) rma::put_now(p, plain_cell{r, 8}, 1);
        last = std::max(last, ns(p.now()));
      };
    play(rma::topology::balanced({10, 8}), parts, profile);
    return last > 1e9;
  };
  EXPECT_FALSE(misses_with(1280));
  EXPECT_TRUE(misses_with(1279));
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

TEST(cost, of_a_message_grows_with_the_ranks_whose_buffers_the_receiver_looks_at) {
  auto profile = made_up_machine();
  profile.messages.receive_rank = 7'000;
  const auto way_to_0 = [&](int nodes) {
    double got = 0;
    play(rma::topology::balanced({nodes, 1}),
         {{0,
           [&](sim::port& p) {
             std::ignore = p.receive();
             got = ns(p.now());
           }},
          {1,
           [&](sim::port& p) {
             p.send(0, {1, 2, 3});
           }}},
         profile);
    return got;
  };
  EXPECT_DOUBLE_EQ(way_to_0(2), send + way + to_memory + receive + 2 * 7);
  EXPECT_DOUBLE_EQ(way_to_0(50), send + way + to_memory + receive + 50 * 7);
}

TEST(cost, of_a_library_s_call) {
  auto profile = made_up_machine();
  profile.library = {.acquire = 900'000, .release = 800'000, .access = 1'500'000};
  const auto of = [&](sim::library_call what) {
    return duration(
        two_nodes, [what](sim::port& p) { p.call(what); }, profile);
  };
  EXPECT_DOUBLE_EQ(of(sim::library_call::acquire), 900);
  EXPECT_DOUBLE_EQ(of(sim::library_call::release), 800);
  EXPECT_DOUBLE_EQ(of(sim::library_call::access), 1'500);
  EXPECT_DOUBLE_EQ(duration(two_nodes, [](sim::port& p) { p.call(sim::library_call::acquire); }),
                   0);
}

// A server gets a message, sends `answers` messages and gets another message, which has long been
// there. When it has the second.
double served_after(int answers, const machine_profile& profile) {
  double got = 0;
  play(rma::topology::balanced({3, 1}),
       {{0,
         [&](sim::port& p) {
           p.pause(10'000);
           std::ignore = p.receive();
           for (int i = 0; i < answers; ++i) p.send(2, {1, 2, 3});
           std::ignore = p.receive();
           got = ns(p.now()) - 10'000;
         }},
        {1,
         [](sim::port& p) {
           p.send(0, {1, 2, 3});
           p.send(0, {1, 2, 3});
         }},
        {2,
         [&](sim::port& p) {
           for (int i = 0; i < answers; ++i) std::ignore = p.receive();
         }}},
       profile);
  return got;
}

// The confirmations of messages that are sent one after another are awaited together.
TEST(cost, of_messages_in_a_row_has_one_wait_for_confirmations) {
  auto profile = made_up_machine();
  for (const int answers : {0, 1, 2})
    EXPECT_DOUBLE_EQ(served_after(answers, profile), 2 * receive + answers * send) << answers;
  profile.messages.confirmed = true;
  const double wait = 2 * way + to_memory + complete;
  EXPECT_DOUBLE_EQ(served_after(0, profile), 2 * receive);
  EXPECT_DOUBLE_EQ(served_after(1, profile), 2 * receive + send + wait);
  EXPECT_DOUBLE_EQ(served_after(2, profile), 2 * receive + 2 * send + wait);
}

// A rank that waits for an answer has its message confirmed meanwhile.
TEST(cost, of_a_confirmation_is_nothing_to_who_waits_longer) {
  auto profile = made_up_machine();
  const auto round_trip = [&] {
    double took = 0;
    play(two_nodes,
         {{0,
           [&](sim::port& p) {
             p.send(1, {1, 2, 3});
             std::ignore = p.receive();
             took = ns(p.now());
           }},
          {1,
           [](sim::port& p) {
             std::ignore = p.receive();
             p.send(0, {1, 2, 3});
           }}},
         profile);
    return took;
  };
  const double without = round_trip();
  profile.messages.confirmed = true;
  EXPECT_DOUBLE_EQ(round_trip(), without);
}

struct serves_nothing final : rma::message_handler {
  void handle(const rma::message&) override {}
  void lost(rma::rank_t) override {}
};

TEST(cost, of_a_message_is_more_where_it_is_served) {
  auto profile = made_up_machine();
  profile.messages.serve = 123'000;
  const auto got = [&](bool serves) {
    double at = 0;
    serves_nothing handler;
    play(two_nodes,
         {{0,
           [&](sim::port& p) {
             if (serves) p.serve_with(&handler);
             std::ignore = p.receive();
             at = ns(p.now());
           }},
          {1,
           [](sim::port& p) {
             p.send(0, {1, 2, 3});
           }}},
         profile);
    return at;
  };
  EXPECT_DOUBLE_EQ(got(false), send + way + to_memory + receive);
  EXPECT_DOUBLE_EQ(got(true), send + way + to_memory + receive + 123);
}

// ---- what a run reports ----

TEST(report, has_the_time_that_a_processor_needs_for_messages) {
  auto profile = made_up_machine();
  profile.messages.serve = 100'000;
  profile.messages.confirmed = true;
  serves_nothing handler;
  double part = 0;
  play(two_nodes,
       {{0,
         [&](sim::port& p) {
           p.serve_with(&handler);
           for (int i = 0; i < 2; ++i) {
             std::ignore = p.receive();
             p.send(1, {1, 2, 3});
           }
           p.compute_until(20'000'000);
           part = p.part_on_messages();
         }},
        {1,
         [](sim::port& p) {
           p.send(0, {1, 2, 3});
           p.send(0, {1, 2, 3});
           for (int i = 0; i < 2; ++i) std::ignore = p.receive();
         }}},
       profile);
  const double wait = 2 * way + to_memory + complete;
  EXPECT_NEAR(part, (2 * (receive + 100 + send) + wait) / 20'000, 1e-9);
}

TEST(report, has_the_time_that_a_card_needs_for_atomics) {
  double part = 0;
  double of = 0;
  play(two_nodes, {{0,
                    [&](sim::port& p) {
                      p.pause(10'000);
                      std::ignore = p.load(plain_cell{0, 24});
                      part = p.part_on_atomics();
                      of = ns(p.now());
                    }},
                   {1, [](sim::port& p) {
                      for (int i = 0; i < 4; ++i)
                        std::ignore = rma::fetch_add_now(p, nic_cell{0, 16}, 1);
                      rma::put_now(p, plain_cell{0, 8}, 1);
                    }}});
  EXPECT_DOUBLE_EQ(part, 4 * atomic / of);
}

TEST(report, has_the_compare_swaps_that_fail) {
  for (const auto& profile : {made_up_machine(), made_up_many_core()})
    std::ignore = duration(
        two_nodes,
        [](sim::port& p) {
          EXPECT_EQ(rma::compare_swap_now(p, far_nic, 5, 6), 0);
          EXPECT_EQ(rma::compare_swap_now(p, far_nic, 0, 6), 0);
          EXPECT_EQ(rma::fetch_add_now(p, far_nic, 1), 6);
          EXPECT_EQ(rma::compare_swap_now(p, nic_cell{0, 16}, 1, 7), 0);
          EXPECT_EQ(p.cpu_compare_swap(cpu_cell{0, 24}, 1, 7), 0);  // not posted
          EXPECT_EQ(p.swaps().posted, 3);
          EXPECT_EQ(p.swaps().failed, 2);
        },
        profile);
  // Where the processor carries out posted operations on its own node.
  auto profile = made_up_machine();
  profile.nic.own = sim::own_node::all;
  std::ignore = duration(
      two_nodes,
      [](sim::port& p) {
        EXPECT_EQ(rma::compare_swap_now(p, nic_cell{0, 16}, 1, 7), 0);
        EXPECT_EQ(p.swaps().failed, 1);
      },
      profile);
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
