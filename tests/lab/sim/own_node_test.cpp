// Machines whose processors do posted operations on cells of their own node, and ranks that wake.
#include <gtest/gtest.h>

#include <array>

#include "costs.hpp"

namespace lockflight::test {
namespace {

const rma::topology one_node = rma::topology::flat(2);
constexpr plain_cell plain{1, 8};
constexpr nic_cell nic{1, 16};
constexpr double by_card = post + 2 * loopback + to_memory + complete;

double own(sim::own_node who, const std::function<void(sim::port&)>& body) {
  auto profile = made_up_machine();
  profile.nic.own = who;
  return duration(one_node, body, profile);
}

void gets(sim::port& p) {
  word got = 0;
  p.get(plain, got);
  p.flush(1);
}

void adds(sim::port& p) {
  word before = 0;
  p.fetch_add(nic, 1, before);
  p.flush(1);
}

TEST(own_node, the_card_or_the_processor_does_its_operations) {
  using enum sim::own_node;
  EXPECT_DOUBLE_EQ(own(card, gets), by_card);
  EXPECT_DOUBLE_EQ(own(card, adds), by_card + atomic);
  // A card has written the line last: nobody has yet.
  EXPECT_DOUBLE_EQ(own(cells, gets), dma_transfer + hit);
  EXPECT_DOUBLE_EQ(own(cells, adds), by_card + atomic);
  EXPECT_DOUBLE_EQ(own(all, gets), dma_transfer + hit);
  EXPECT_DOUBLE_EQ(own(all, adds), dma_transfer + rmw);
}

TEST(own_node, what_the_processor_does_is_seen_at_once) {
  auto profile = made_up_machine();
  profile.nic.own = sim::own_node::all;
  play(one_node,
       {{0,
         [](sim::port& p) {
           word before = 7;
           p.put(plain, 5);
           EXPECT_EQ(p.load(plain), 5);
           p.fetch_add(nic, 3, before);
           EXPECT_EQ(before, 0);
           p.swap(nic, 9, before);
           EXPECT_EQ(before, 3);
           p.compare_swap(nic, 8, 1, before);
           EXPECT_EQ(before, 9);
           p.compare_swap(nic, 9, 1, before);
           EXPECT_EQ(p.load(nic), 1);
           p.add(nic, 4);
           EXPECT_EQ(p.load(nic), 5);
           std::array<word, 2> lines{};
           p.get_lines(plain, lines);
           EXPECT_EQ(lines, (std::array<word, 2>{5, 5}));  // of the next line: the nic cell
         }}},
       profile);
}

TEST(own_node, operations_on_another_node_are_the_cards_all_the_same) {
  auto profile = made_up_machine();
  profile.nic.own = sim::own_node::all;
  const auto far_get = [](sim::port& p) {
    word got = 0;
    p.get(far, got);
    p.flush(far.home);
  };
  EXPECT_DOUBLE_EQ(duration(two_nodes, far_get, profile), duration(two_nodes, far_get));
}

TEST(own_node, a_rank_that_waits_wakes_later) {
  const auto seen_at = [](sim::time_ps wake) {
    auto profile = made_up_machine();
    profile.cpu.wake = wake;
    double at = 0;
    play(one_node,
         {{0,
           [](sim::port& p) {
             p.compute_until(1'000'000);
             p.store(plain, 1);
           }},
          {1,
           [&](sim::port& p) {
             p.await(plain, [](word now) { return now == 1; });
             at = ns(p.now());
           }}},
         profile);
    return at;
  };
  EXPECT_DOUBLE_EQ(seen_at(250'000), seen_at(0) + 250);
}

}  // namespace
}  // namespace lockflight::test
