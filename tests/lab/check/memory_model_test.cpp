// Litmus tests of the checker's memory: it shows every behaviour that a network may have, and no
// other.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lab/check/engine/port.hpp"
#include "lab/check/search/search.hpp"
#include "two_cells.hpp"

namespace lockflight::check {
namespace {

/// Runs two participants in every order and returns what rank 1 (and 0) reported with `see`.
class litmus {
 public:
  using body = std::function<void(port&, litmus&)>;

  litmus(const rma::topology& machine, body first, body second, const model& how = {})
      : engine_({machine,
                 [this, first, second](engine& e, rank_t me) {
                   port p(e, me);
                   (me == 0 ? first : second)(p, *this);
                 }},
                how) {
    found_ = search_all(engine_, {});
  }

  /// Called in a body: an outcome, as a violation that carries it. The search stops at the first.
  void see(const std::string& what) { engine_.fail("seen", what); }

  [[nodiscard]] bool seen() const { return found_.broken && found_.broken->property == "seen"; }
  [[nodiscard]] const outcome& found() const { return found_; }

 private:
  engine engine_;
  outcome found_;
};

const rma::topology one_node = rma::topology::flat(2);
const rma::topology two_nodes = rma::topology::balanced({2, 1});

TEST(memory_model, a_load_can_overtake_a_store) {
  const auto side = [](std::uint32_t mine, std::uint32_t other) {
    return [mine, other](port& p, litmus& l) {
      p.store(rma::plain_cell{0, mine}, 1);
      const word saw = p.load(rma::plain_cell{0, other});
      // Passed through cells: a test's own variables are not part of the state.
      p.store(rma::plain_cell{1, mine}, saw + 1);
      p.fence();
      if (p.load(rma::plain_cell{1, x}) == 1 && p.load(rma::plain_cell{1, y}) == 1) l.see("0 0");
    };
  };
  EXPECT_TRUE(litmus(one_node, side(x, y), side(y, x)).seen());
  EXPECT_FALSE(litmus(one_node, side(x, y), side(y, x), {.store_buffering = false}).seen());
}

TEST(memory_model, a_fence_keeps_a_load_behind_a_store) {
  const auto side = [](std::uint32_t mine, std::uint32_t other) {
    return [mine, other](port& p, litmus& l) {
      p.store(rma::plain_cell{0, mine}, 1);
      p.fence();
      const word saw = p.load(rma::plain_cell{0, other});
      p.store(rma::plain_cell{1, mine}, saw + 1);
      p.fence();
      if (p.load(rma::plain_cell{1, x}) == 1 && p.load(rma::plain_cell{1, y}) == 1) l.see("0 0");
    };
  };
  EXPECT_FALSE(litmus(one_node, side(x, y), side(y, x)).seen());
}

TEST(memory_model, a_fence_of_the_node_keeps_the_load_of_another_behind_its_store) {
  const auto side = [](std::uint32_t mine, std::uint32_t other, auto fence) {
    return [=](port& p, litmus& l) {
      p.store(rma::plain_cell{0, mine}, 1);
      fence(p);
      const word saw = p.load(rma::plain_cell{0, other});
      p.store(rma::plain_cell{1, mine}, saw + 1);
      p.fence();
      if (p.load(rma::plain_cell{1, x}) == 1 && p.load(rma::plain_cell{1, y}) == 1) l.see("0 0");
    };
  };
  const auto nothing = side(x, y, [](port&) {});
  const auto own = [](port& p) { p.fence(); };
  const auto of_node = [](port& p) { p.fence_node(); };
  EXPECT_TRUE(litmus(one_node, nothing, side(y, x, own)).seen());
  EXPECT_FALSE(litmus(one_node, nothing, side(y, x, of_node)).seen());
  EXPECT_FALSE(litmus(one_node, nothing, side(y, x, of_node), {.delayed_effects = false}).seen());
  // It does not complete posted operations (C7), and has no effect beyond the node.
  const auto posts = [](port& p, litmus& l) {
    p.put(rma::plain_cell{0, x}, 1);
    p.fence_node();
    if (p.load(rma::plain_cell{0, x}) == 0) l.see("not yet");
    p.flush();
  };
  EXPECT_TRUE(litmus(one_node, posts, [](port&, litmus&) {}).seen());
}

TEST(memory_model, posted_puts_are_unordered_until_a_flush) {
  const auto reader = [](port& p, litmus& l) {
    p.await(rma::plain_cell{1, y}, rma::equals(1));
    if (p.load(rma::plain_cell{1, x}) == 0) l.see("flag without data");
  };
  const auto writer = [](bool flushed) {
    return [flushed](port& p, litmus&) {
      p.put(rma::plain_cell{1, x}, 1);
      if (flushed) p.flush(1);
      p.put(rma::plain_cell{1, y}, 1);
      p.flush(1);
    };
  };
  EXPECT_TRUE(litmus(two_nodes, writer(false), reader).seen());
  EXPECT_FALSE(litmus(two_nodes, writer(true), reader).seen());
  EXPECT_FALSE(litmus(two_nodes, writer(false), reader, {.delayed_effects = false}).seen());
  EXPECT_FALSE(litmus(two_nodes, writer(false), reader, {.reordering = false}).seen());
}

// Where a port orders posts, to another rank they may still be early, and before a flush late.
TEST(memory_model, posts_are_ordered_to_each_rank_by_itself) {
  const auto writer = [](port& p, litmus&) {
    p.put(rma::plain_cell{0, x}, 1);
    p.put(rma::plain_cell{1, y}, 1);
    p.flush();
  };
  const auto reader = [](port& p, litmus& l) {
    p.await(rma::plain_cell{1, y}, rma::equals(1));
    if (rma::get_now(p, rma::plain_cell{0, x}) == 0) l.see("flag without data");
  };
  EXPECT_TRUE(litmus(two_nodes, writer, reader, {.reordering = false}).seen());
  const auto says = [](bool ordered) {
    return [ordered](port& p, litmus& l) {
      if (rma::orders_posts(p) != ordered) l.see("not what it does");
    };
  };
  EXPECT_FALSE(litmus(two_nodes, says(true), says(true), {.reordering = false}).seen());
  EXPECT_FALSE(litmus(two_nodes, says(false), says(false)).seen());
}

TEST(memory_model, a_store_is_visible_before_a_later_put_takes_effect) {
  const auto writer = [](port& p, litmus&) {
    p.store(rma::plain_cell{0, x}, 1);
    p.put(rma::plain_cell{1, y}, 1);
    p.flush(1);
  };
  const auto reader = [](port& p, litmus& l) {
    p.await(rma::plain_cell{1, y}, rma::equals(1));
    if (rma::get_now(p, rma::plain_cell{0, x}) == 0) l.see("flag without data");
  };
  EXPECT_FALSE(litmus(two_nodes, writer, reader).seen());
}

TEST(memory_model, a_result_is_garbage_before_its_flush) {
  const auto early = [](port& p, litmus& l) {
    word result = 0;
    p.get(rma::plain_cell{1, x}, result);
    if (result != 0) l.see("garbage");
    p.flush(1);
  };
  EXPECT_TRUE(litmus(two_nodes, early, [](port&, litmus&) {}).seen());
}

TEST(memory_model, what_is_never_flushed_may_never_happen) {
  const auto writer = [](port& p, litmus&) { p.put(rma::plain_cell{1, x}, 1); };
  const auto reader = [](port& p, litmus&) { p.await(rma::plain_cell{1, x}, rma::equals(1)); };
  const litmus l(two_nodes, writer, reader);
  ASSERT_TRUE(l.found().broken);
  EXPECT_EQ(l.found().broken->property, "lost wake-up");
  EXPECT_NE(l.found().broken->detail.find("never flushes its put"), std::string::npos);
}

TEST(memory_model, reaching_into_another_node_is_reported) {
  const auto load = [](port& p, litmus&) { static_cast<void>(p.load(rma::plain_cell{1, x})); };
  const litmus l(two_nodes, load, [](port&, litmus&) {});
  ASSERT_TRUE(l.found().broken);
  EXPECT_EQ(l.found().broken->property, "contract");
}

TEST(memory_model, both_classes_on_a_cell_are_reported) {
  const auto nic = [](port& p, litmus&) {
    static_cast<void>(rma::fetch_add_now(p, rma::nic_cell{1, x}, 1));
  };
  const auto cpu = [](port& p, litmus&) {
    static_cast<void>(p.cpu_fetch_add(rma::cpu_cell{1, x}, 1));
  };
  const litmus reported(two_nodes, nic, cpu);
  ASSERT_TRUE(reported.found().broken);
  EXPECT_EQ(reported.found().broken->property, "mixed classes");
}

TEST(memory_model, a_nic_rmw_is_not_atomic_with_a_cpu_rmw) {
  const auto nic = [](port& p, litmus& l) {
    static_cast<void>(rma::fetch_add_now(p, rma::nic_cell{1, x}, 1));
    if (rma::get_now(p, rma::plain_cell{1, y}) == 1 && rma::get_now(p, rma::nic_cell{1, x}) != 2)
      l.see("an increment is lost");
  };
  const auto cpu = [](port& p, litmus&) {
    static_cast<void>(p.cpu_fetch_add(rma::cpu_cell{1, x}, 1));
    p.store(rma::plain_cell{1, y}, 1);
  };
  EXPECT_TRUE(litmus(two_nodes, nic, cpu, {.report_mixed = false}).seen());
}

TEST(memory_model, nic_rmws_are_atomic_with_each_other) {
  const auto side = [](rank_t, std::uint32_t done) {
    return [done](port& p, litmus& l) {
      static_cast<void>(rma::fetch_add_now(p, rma::nic_cell{1, x}, 1));
      rma::put_now(p, rma::plain_cell{1, done}, 1);
      if (rma::get_now(p, rma::plain_cell{1, y}) == 1 &&
          rma::get_now(p, rma::plain_cell{1, y + 1}) == 1 &&
          rma::get_now(p, rma::nic_cell{1, x}) != 2)
        l.see("an increment is lost");
    };
  };
  EXPECT_FALSE(litmus(two_nodes, side(0, y), side(1, y + 1)).seen());
}

}  // namespace
}  // namespace lockflight::check
