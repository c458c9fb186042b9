// The delaying decorator: it must really delay and shuffle, else the suites that run on it prove
// less than they claim.
#include <algorithm>
#include <map>
#include <vector>

#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

constexpr int always = 256;  // of 256

/// Remembers the order in which operations take effect.
class recorder : public fabric::decorator<shm::port> {
  using base = fabric::decorator<shm::port>;

 public:
  using base::base;
  std::vector<word> order;  // the values of puts and adds

  template <class Cell>
  void put(Cell to, word value) {
    order.push_back(value);
    base::put(to, value);
  }
  void add(nic_cell to, word value) {
    order.push_back(value);
    base::add(to, value);
  }
};

using delayed = fabric::delaying<recorder>;

/// Runs `body(port, me, effects)` on rank 0 of 3 nodes.
template <class Body>
void on_rank_0(const fabric::disorder& how, Body body) {
  shm::run_ports({.machine = nodes(3, 1), .threads = true}, [&](shm::port& bare) {
    if (bare.rank() != 0) return;
    recorder effects(bare);
    delayed port(effects, how);
    rma::participant<delayed> me(port, 4096);
    body(port, me, effects);
  });
}

constexpr fabric::disorder to_the_last{.seed = 1, .postpone = always, .linger = 0};

TEST(delaying, postponed_operations_wait_for_the_flush) {
  on_rank_0(to_the_last, [](auto& port, auto& me, recorder&) {
    const one_of_each cells = one_of_each::take_from(me);  // its own: it sees them without a flush
    for (const writing how : {writing::put_plain, writing::put_cpu, writing::put_nic}) {
      on_cell_of(how, cells, [&](auto cell) {
        port.put(cell, 5);
        require(port.load(cell) == 0, "a postponed put is not there before its flush");
        port.flush(1);
        require(port.load(cell) == 0, "nor after another target's");
        port.flush(0);
        require(port.load(cell) == 5, "and there after it");
      });
    }
    word found = 99;
    port.fetch_add(cells.nic, 1, found);
    require(port.load(cells.nic) == 5 && found == 99, "fetch_add");
    port.flush();
    require(port.load(cells.nic) == 6 && found == 5, "fetch_add, flushed");
    port.swap(cells.nic, 7, found);
    require(port.load(cells.nic) == 6 && found == 5, "swap");
    port.flush();
    require(port.load(cells.nic) == 7 && found == 6, "swap, flushed");
    port.compare_swap(cells.nic, 7, 8, found);
    port.add(cells.nic, 0);
    require(port.load(cells.nic) == 7 && found == 6, "compare_swap");
    port.flush();
    require(port.load(cells.nic) == 8 && found == 7, "compare_swap, flushed");
  });
}

TEST(delaying, gets_read_late) {
  on_rank_0(to_the_last, [](auto& port, auto& me, recorder&) {
    const auto cell = take<plain_cell>(me);
    word found = 99;
    port.get(cell, found);
    port.store(cell, 3);
    require(found == 99, "the result is not there yet");
    port.flush(0);
    require(found == 3, "a get may read at its flush");
  });
}

constexpr int several = 20;

/// The order in which `several` posted puts take effect.
std::vector<word> order_with(const fabric::disorder& how) {
  std::vector<word> order;
  on_rank_0(how, [&](auto& port, auto& me, recorder& effects) {
    const auto cells = take<plain_cell>(me, several);
    for (int i = 0; i < several; ++i) port.put(nth(cells.at(i % 3), i), static_cast<word>(i));
    port.flush();
    order = effects.order;
  });
  return order;
}

std::vector<word> sorted(std::vector<word> v) {
  std::sort(v.begin(), v.end());
  return v;
}

TEST(delaying, order_is_shuffled_and_nothing_is_lost) {
  const std::vector<word> posted = sorted(order_with(to_the_last));
  ASSERT_EQ(posted.size(), static_cast<std::size_t>(several));
  for (word i = 0; i < several; ++i) EXPECT_EQ(posted[i], i);
  std::map<std::vector<word>, int> orders;
  for (std::uint64_t s = 0; s < 20; ++s)
    ++orders[order_with({.seed = seed() + s, .postpone = always, .linger = 0})];
  EXPECT_EQ(orders.size(), 20u) << "each seed gives another order";
  EXPECT_EQ(orders.count(posted), 0u) << "none of them the order of the calls";
}

TEST(delaying, the_first_operation_is_everywhere_in_the_order) {
  std::map<std::size_t, int> places;
  for (std::uint64_t s = 0; s < 200; ++s) {
    const auto order = order_with({.seed = seed() + s, .postpone = always, .linger = 0});
    const auto at = std::find(order.begin(), order.end(), word{0}) - order.begin();
    ++places[static_cast<std::size_t>(at)];
  }
  EXPECT_GE(places.size(), 15u) << "of 20 places";
}

TEST(delaying, a_seed_repeats_itself) {
  for (const int postpone : {64, 128, always}) {
    const fabric::disorder how{.seed = seed(), .postpone = postpone, .longest_ns = 10};
    EXPECT_EQ(order_with(how), order_with(how)) << "seed " << seed();
  }
}

TEST(delaying, without_postponing_it_is_the_fabric_underneath) {
  const fabric::disorder none{.seed = seed(), .postpone = 0, .linger = 0};
  const std::vector<word> order = order_with(none);
  EXPECT_EQ(order, sorted(order)) << "in the order of the calls";
}

TEST(delaying, a_flush_of_a_rank_leaves_the_others_pending) {
  on_rank_0(to_the_last, [](auto& port, auto& me, recorder& effects) {
    const auto cells = take<nic_cell>(me);
    for (const rank_t to : {1, 2, 0, 2, 1}) port.add(cells.at(to), static_cast<word>(to) + 10);
    port.flush(2);
    require(effects.order == std::vector<word>{12, 12}, "only what went to rank 2");
    port.flush(1);
    require(sorted(effects.order) == std::vector<word>{11, 11, 12, 12}, "and to rank 1");
    port.flush();
    require(effects.order.back() == 10 && effects.order.size() == 5, "and the rest");
    port.flush();
    require(effects.order.size() == 5, "once");
  });
}

// Between the extremes some operations run early, at a later call, others at the flush.
TEST(delaying, some_run_early) {
  int early = 0;
  int late = 0;
  for (std::uint64_t s = 0; s < 50; ++s) {
    const fabric::disorder how{.seed = seed() + s, .postpone = 128, .linger = 0};
    on_rank_0(how, [&](auto& port, auto& me, recorder& effects) {
      const auto cells = take<plain_cell>(me, 2);
      port.put(nth(cells.at(1), 0), 1);
      port.put(nth(cells.at(2), 0), 2);
      static_cast<void>(port.load(nth(cells, 1)));
      effects.order.size() == 2 ? ++early : ++late;
      port.flush();
    });
  }
  EXPECT_GT(early, 5);
  EXPECT_GT(late, 5);
}

TEST(delaying, stores_take_effect_at_once) {
  on_rank_0(to_the_last, [](auto& port, auto& me, recorder& effects) {
    const one_of_each cells = one_of_each::take_from(me);
    port.put(cells.plain.at(1), 1);
    port.store(cells.plain, 7);
    require(port.load(cells.plain) == 7, "C12: a store is never postponed");
    require(port.cpu_fetch_add(cells.cpu, 1) == 0 && port.load(cells.cpu) == 1, "nor an RMW");
    require(effects.order.empty(), "while the put is");
    port.flush();
  });
}

}  // namespace
}  // namespace lockflight::test
