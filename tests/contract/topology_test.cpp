// The machine as a tree of elements, and how its levels are spelt.
#include "lockflight/rma/topology.hpp"

#include <gtest/gtest.h>

#include <climits>

namespace lockflight::rma {
namespace {

using levels = std::vector<std::vector<int>>;

TEST(topology, balanced_tree) {
  const topology t = topology::balanced({2, 3});  // 2 elements of 3 ranks below the machine
  EXPECT_EQ(t.ranks(), 6);
  EXPECT_EQ(t.levels(), 2);
  EXPECT_EQ(t.node_level(), 2);
  EXPECT_EQ(t.nodes(), 2);
  EXPECT_EQ(t.elements(1), 1);
  EXPECT_EQ(t.elements(2), 2);
  for (rank_t r = 0; r < 6; ++r) {
    EXPECT_EQ(t.element_of(r, 1), 0);
    EXPECT_EQ(t.node_of(r), r / 3);
    EXPECT_EQ(t.leader_of(r, 1), 0);
    EXPECT_EQ(t.leader_of(r, 2), r / 3 * 3);
  }
  EXPECT_TRUE(t.same_node(3, 5));
  EXPECT_FALSE(t.same_node(2, 3));
  EXPECT_EQ(t.common_level(0, 2), 2);
  EXPECT_EQ(t.common_level(2, 3), 1);
  EXPECT_EQ(t.common_level(4, 4), 2);
}

TEST(topology, three_levels_with_the_node_in_the_middle) {
  const topology t = topology::balanced({2, 2, 2}, /*node_level=*/2);
  EXPECT_EQ(t.ranks(), 8);
  EXPECT_EQ(t.levels(), 3);
  EXPECT_EQ(t.nodes(), 2);
  EXPECT_EQ(t.elements(3), 4);
  EXPECT_TRUE(t.same_node(0, 3)) << "other elements of level 3, the same of level 2";
  EXPECT_FALSE(t.same_node(3, 4));
  EXPECT_EQ(t.common_level(0, 1), 3);
  EXPECT_EQ(t.common_level(0, 2), 2);
  EXPECT_EQ(t.common_level(0, 7), 1);
  EXPECT_EQ(t.leader(3, 3), 6);
}

TEST(topology, flat_is_one_node) {
  const topology t = topology::flat(5);
  EXPECT_EQ(t.levels(), 1);
  EXPECT_EQ(t.nodes(), 1);
  EXPECT_TRUE(t.same_node(0, 4));
  EXPECT_EQ(topology::flat(1).ranks(), 1);
}

TEST(topology, elements_need_not_be_equal_nor_in_order) {
  const topology t({{0, 0, 0, 0, 0}, {1, 0, 1, 1, 0}}, 2);
  EXPECT_EQ(t.nodes(), 2);
  EXPECT_EQ(t.leader(2, 0), 1);
  EXPECT_EQ(t.leader(2, 1), 0);
  EXPECT_TRUE(t.same_node(0, 3));
  EXPECT_FALSE(t.same_node(0, 1));
}

TEST(topology, a_look_up_works_for_every_pair) {
  const topology t = topology::balanced({3, 2, 2});
  for (rank_t a = 0; a < t.ranks(); ++a)
    for (rank_t b = 0; b < t.ranks(); ++b) {
      const int level = t.common_level(a, b);
      EXPECT_EQ(t.element_of(a, level), t.element_of(b, level));
      if (level < t.levels()) {
        EXPECT_NE(t.element_of(a, level + 1), t.element_of(b, level + 1));
      }
      EXPECT_EQ(level, t.common_level(b, a));
      EXPECT_EQ(t.same_node(a, b), level >= t.node_level());
    }
}

/// What the constructor says of these levels; empty if it takes them.
std::string complaint(levels of, int node_level = 1) {
  try {
    const topology t(std::move(of), node_level);
    return "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

TEST(topology, refuses_what_is_no_tree) {
  EXPECT_EQ(complaint({{0, 0}, {0, 1}}, 2), "");
  EXPECT_NE(complaint({}), "");
  EXPECT_NE(complaint({{}}), "");
  EXPECT_EQ(complaint({{0, 1}}), "level 1 must be one element");
  EXPECT_EQ(complaint({{0, 0}, {0}}), "level 2 has another number of ranks");
  EXPECT_EQ(complaint({{0, 0}, {0, -1}}), "negative element number");
  EXPECT_NE(complaint({{-1, -1}}), "");
  EXPECT_EQ(complaint({{0, 0}, {0, 2}}), "level 2 has an empty element");
  EXPECT_EQ(complaint({{0, 0, 0, 0}, {0, 0, 1, 1}, {0, 1, 1, 2}}),
            "level 3 does not refine level 2");
}

TEST(topology, refuses_a_node_level_that_is_none) {
  for (const int level : {-1, 0, 3})
    EXPECT_EQ(complaint({{0, 0}, {0, 1}}, level),
              "node level " + std::to_string(level) + " is not in 1..2");
  EXPECT_THROW(topology::balanced({2, 2}, 3), std::invalid_argument);
  EXPECT_THROW(topology::balanced({2, 2}, -1), std::invalid_argument);
}

TEST(topology, refuses_trees_without_ranks) {
  EXPECT_THROW(topology::balanced({}), std::invalid_argument);
  EXPECT_THROW(topology::balanced({0}), std::invalid_argument);
  EXPECT_THROW(topology::balanced({2, 0}), std::invalid_argument);
  EXPECT_THROW(topology::flat(-1), std::invalid_argument);
  EXPECT_THROW(topology::balanced({-2, -2}), std::invalid_argument);
}

TEST(parse_levels, reads_fanouts) {
  EXPECT_EQ(parse_levels("1"), std::vector{1});
  EXPECT_EQ(parse_levels("2x4"), (std::vector{2, 4}));
  EXPECT_EQ(parse_levels("2x4x16"), (std::vector{2, 4, 16}));
  EXPECT_EQ(parse_levels("16777216"), std::vector{1 << 24});
  EXPECT_EQ(parse_levels("4096x4096"), (std::vector{4096, 4096}));
}

TEST(parse_levels, refuses_everything_else_and_says_what_it_accepts) {
  for (const char* const bad : {"",
                                "x",
                                "2x",
                                "x2",
                                "2xx4",
                                "0",
                                "2x0",
                                "-1",
                                "2x-4",
                                "+2",
                                " 2",
                                "2 ",
                                "2 x 4",
                                "2X4",
                                "1.5",
                                "2,4",
                                "two",
                                "0x10",
                                "2x4y",
                                "16777217",
                                "4096x4097",
                                "2147483648",
                                "99999999999999999999",
                                "2147483647x2147483647x2147483647"}) {
    try {
      static_cast<void>(parse_levels(bad));
      FAIL() << "'" << bad << "' was accepted";
    } catch (const std::invalid_argument& e) {
      EXPECT_EQ(e.what(),
                "'" + std::string(bad) + "' (accepted: positive numbers joined by x, such as 2x4)");
    }
  }
  EXPECT_THROW(static_cast<void>(parse_levels(std::string_view())), std::invalid_argument);
}

}  // namespace
}  // namespace lockflight::rma
