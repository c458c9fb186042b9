// C10 to C15: immediate operations, and how they are ordered with each other and with posted ones.
#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

TYPED_TEST_SUITE(contract, contract_fabrics, fabric_names);
const bool modes_of_immediate = run_in(contract_modes);

TYPED_TEST(contract, C10_immediate_operations_reach_the_whole_node) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    const one_of_each cells = one_of_each::take_from(me);
    const rank_t neighbour = me.rank() ^ 1;
    const one_of_each there = cells.at(neighbour);
    const one_of_each here = cells.at(me.rank());
    rma::barrier together(me);
    port.store(there.plain, 10 + static_cast<word>(me.rank()));
    port.store(there.cpu, 20);
    require(port.cpu_fetch_add(there.cpu, 1) == 20, "cpu_fetch_add on a neighbour's cell");
    require(port.cpu_swap(there.cpu, 30) == 21, "cpu_swap on a neighbour's cell");
    require(port.cpu_compare_swap(there.cpu, 30, 31) == 30, "cpu_compare_swap there");
    rma::put_now(port, there.nic, 40);
    together.arrive_and_wait();
    require(port.load(here.plain) == 10 + static_cast<word>(neighbour) &&
                port.load(here.cpu) == 31 && port.load(here.nic) == 40,
            "the neighbour's writes are here");
    require(port.load(there.cpu) == 31, "a load of a neighbour's cell");
  });
}

TYPED_TEST(contract, C11_own_stores_are_seen_at_once) {
  run_on<TypeParam>(one_node(1), [](auto& me) {
    auto& port = me.port();
    const one_of_each cells = one_of_each::take_from(me);
    for (word i = 1; i <= static_cast<word>(rounds<TypeParam>(100)); ++i) {
      port.store(cells.plain, i);
      require(port.load(cells.plain) == i, "a load sees the own store");
      port.store(cells.cpu, 2 * i);
      require(port.cpu_fetch_add(cells.cpu, 1) == 2 * i, "a read-modify-write sees it too");
      require(port.load(cells.cpu) == 2 * i + 1, "and a load the read-modify-write");
    }
  });
}

// Message passing on a node: a participant that sees the later store sees the earlier one.
TYPED_TEST(contract, C11_stores_are_seen_in_order) {
  run_on<TypeParam>(one_node(2), [](auto& me) {
    auto& port = me.port();
    const int n = rounds<TypeParam>(1000);
    const auto data = take<plain_cell>(me, n);
    const auto flag = take<cpu_cell>(me);
    for (int i = 0; i < n; ++i) {
      const word value = static_cast<word>(i) + 1;
      if (me.rank() == 0) {
        port.store(nth(data, i), value);
        port.store(flag, value);
      } else {
        port.await(flag, [value](word now) { return now >= value; });
        require(port.load(nth(data, i)) == value, "stores are seen in order");
      }
    }
  });
}

// Load buffering: no participant sees a store that depends on its own later write.
TYPED_TEST(contract, C11_a_store_does_not_overtake_a_load) {
  run_on<TypeParam>(one_node(2), [](auto& me) {
    auto& port = me.port();
    const int n = rounds<TypeParam>(500);
    const auto flags = take<plain_cell>(me, n);
    const auto seen = take<plain_cell>(me, n);
    const rank_t other = 1 - me.rank();
    std::minstd_rand random = jitter_of(me.rank());
    rma::barrier together(me);
    for (int i = 0; i < n; ++i) {
      together.arrive_and_wait();
      jitter(random);
      const word theirs = port.load(nth(flags.at(other), i));
      port.store(nth(flags.at(me.rank()), i), 1);
      port.store(nth(seen.at(me.rank()), i), theirs);
    }
    together.arrive_and_wait();
    for (int i = 0; i < n; ++i)
      require(port.load(nth(seen.at(0), i)) == 0 || port.load(nth(seen.at(1), i)) == 0,
              "not both see the other's later store");
  });
}

/// Store buffering: both ranks write, then read the other's cell, on fresh cells each round; in
/// each round one of them must see the other's write. `write_then_read(mine, theirs)` does one
/// side's part.
template <class Fabric, class Cell, class WriteThenRead>
void store_buffering(const rma::topology& machine, WriteThenRead write_then_read) {
  run_on<Fabric>(machine, [write_then_read](auto& me) {
    auto& port = me.port();
    const int n = rounds<Fabric>(3000);
    const auto flags = take<Cell>(me, n);
    const auto seen = take<plain_cell>(me, n);
    const rank_t other = 1 - me.rank();
    std::minstd_rand random = jitter_of(me.rank());
    rma::barrier together(me);
    for (int i = 0; i < n; ++i) {
      together.arrive_and_wait();
      jitter(random);
      const word found =
          write_then_read(port, nth(flags.at(me.rank()), i), nth(flags.at(other), i));
      port.store(nth(seen.at(me.rank()), i), found);
    }
    together.arrive_and_wait();
    for (int i = 0; i < n; ++i)
      require(port.load(nth(seen.at(me.rank()), i)) != 0 ||
                  rma::get_now(port, nth(seen.at(other), i)) != 0,
              "round " + std::to_string(i) + ": neither saw the other's write");
  });
}

TYPED_TEST(contract, C12_a_store_comes_before_a_later_get) {
  store_buffering<TypeParam, plain_cell>(nodes(2, 1), [](auto& port, auto mine, auto theirs) {
    port.store(mine, 1);
    return rma::get_now(port, theirs);
  });
}

TYPED_TEST(contract, C12_a_store_comes_before_a_later_fetch_add) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const int n = rounds<TypeParam>(500);
    const auto data = take<plain_cell>(me, n);
    const auto turn = take<nic_cell>(me, n);
    rma::barrier together(me);
    for (int i = 0; i < n; ++i) {
      together.arrive_and_wait();
      port.store(nth(data.at(me.rank()), i), 1);
      const rank_t other = 1 - me.rank();
      if (rma::fetch_add_now(port, nth(turn, i), 1) == 1)
        require(rma::get_now(port, nth(data.at(other), i)) == 1,
                "the second rank sees what the first had stored");
    }
  });
}

// As in every queue lock: initialise a queue node with stores, then publish it.
TYPED_TEST(contract, C12_a_store_is_visible_to_whom_a_put_tells) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const int n = rounds<TypeParam>(500);
    const auto data = take<plain_cell>(me, n).at(0);
    const auto flag = take<plain_cell>(me).at(1);
    for (int i = 0; i < n; ++i) {
      const word value = static_cast<word>(i) + 1;
      if (me.rank() == 0) {
        port.store(nth(data, i), value);
        rma::put_now(port, flag, value);
      } else {
        port.await(flag, [value](word now) { return now >= value; });
        require(rma::get_now(port, nth(data, i)) == value, "the store is visible before the put");
      }
    }
  });
}

// The same passed on by a third participant, as a lock is handed on.
TYPED_TEST(contract, C12_a_store_is_visible_at_the_end_of_a_chain) {
  run_on<TypeParam>(nodes(3, 1), [](auto& me) {
    auto& port = me.port();
    const int n = rounds<TypeParam>(200);
    const auto data = take<plain_cell>(me, n).at(0);
    const auto flag = take<plain_cell>(me);
    for (int i = 0; i < n; ++i) {
      const word value = static_cast<word>(i) + 1;
      if (me.rank() == 0)
        port.store(nth(data, i), value);
      else
        port.await(flag.at(me.rank()), [value](word now) { return now >= value; });
      if (me.rank() < 2)
        rma::put_now(port, flag.at(me.rank() + 1), value);
      else
        require(rma::get_now(port, nth(data, i)) == value, "visible to whom it is told on");
    }
  });
}

TYPED_TEST(contract, C13_a_fence_keeps_loads_behind_stores) {
  store_buffering<TypeParam, plain_cell>(one_node(2), [](auto& port, auto mine, auto theirs) {
    port.store(mine, 1);
    port.fence();
    return port.load(theirs);
  });
}

TYPED_TEST(contract, C43_cells_that_are_loaded_together_are_each_loaded) {
  run_on<TypeParam>(nodes(1, 2), [](auto& me) {
    auto& port = me.port();
    constexpr std::size_t cells = 23;  // more than a processor waits for at one time
    const auto block = take<cpu_cell>(me, cells * rma::line_words);
    rma::barrier together(me);
    std::array<cpu_cell, cells> from{};
    for (std::uint32_t i = 0; i < cells; ++i)
      from[i] = block.at(static_cast<rank_t>(i % 2)) + i * rma::line_words;
    for (word round = 1; round <= 3; ++round) {
      for (std::uint32_t i = 0; i < cells; ++i)
        if (static_cast<rank_t>(i % 3 % 2) == me.rank()) port.store(from[i], 100 * round + i);
      together.arrive_and_wait();
      std::array<word, cells> seen{};
      rma::load_each(port, std::span<const cpu_cell>(from), std::span(seen));
      for (std::uint32_t i = 0; i < cells; ++i)
        require(seen[i] == 100 * round + i, "each cell's own");
      together.arrive_and_wait();
    }
  });
}

TYPED_TEST(contract, C41_a_resolved_cell_is_the_cell) {
  run_on<TypeParam>(one_node(2), [](auto& me) {
    auto& port = me.port();
    const one_of_each cells = one_of_each::take_from(me).at(me.rank() ^ 1);
    const auto plain = rma::resolve(port, cells.plain);
    const auto cpu = rma::resolve(port, cells.cpu);
    const auto nic = rma::resolve(port, cells.nic);
    require(plain_cell{plain} == cells.plain && cpu_cell{cpu} == cells.cpu, "it names the cell");

    port.store(plain, 1);
    require(port.load(cells.plain) == 1, "a store");
    port.store(cells.plain, 2);
    require(port.load(plain) == 2 && rma::get_now(port, plain) == 2, "a load, a get");
    rma::put_now(port, plain, 3);
    require(port.await(plain, rma::equals(3)) == 3, "a put, an await");

    require(port.cpu_fetch_add(cpu, 5) == 0 && port.cpu_swap(cpu, 6) == 5, "CPU atomics");
    require(port.cpu_compare_swap(cpu, 6, 7) == 6, "a compare-swap");
    require(port.load(cells.cpu) == 7 && port.load(cpu) == 7, "what they did");

    require(rma::fetch_add_now(port, nic, 9) == 0, "the card's atomics take it too");
    require(port.load(nic) == 9 && port.load(cells.nic) == 9, "what they did");
  });
}

// A write to it wakes a participant that waits for the cell, and the other way round.
TYPED_TEST(contract, C41_writes_to_a_resolved_cell_wake) {
  run_on<TypeParam>(one_node(2), [](auto& me) {
    auto& port = me.port();
    const auto flag = take<cpu_cell>(me);
    const auto mine = rma::resolve(port, flag.at(me.rank()));
    const auto theirs = rma::resolve(port, flag.at(1 - me.rank()));
    for (word i = 1; i <= static_cast<word>(rounds<TypeParam>(100)); ++i) {
      if (me.rank() == 0) {
        port.store(theirs, i);
        port.await(mine, rma::equals(i));
      } else {
        port.await(mine, rma::equals(i));
        i % 2 == 0 ? port.store(theirs, i) : static_cast<void>(port.cpu_fetch_add(theirs, 1));
      }
    }
  });
}

TYPED_TEST(contract, C40_a_fence_of_the_node_keeps_loads_of_others_behind_their_stores) {
  if constexpr (!TypeParam::port_type::capabilities.node_fence) {
    GTEST_SKIP() << "C40: the fabric " << TypeParam::name << " declares no node_fence";
  } else {
    store_buffering<TypeParam, plain_cell>(one_node(2), [](auto& port, auto mine, auto theirs) {
      port.store(mine, 1);
      if (port.rank() == 0) port.fence_node();
      return port.load(theirs);
    });
  }
}

TYPED_TEST(contract, C14_a_cpu_fetch_add_keeps_loads_behind_it) {
  store_buffering<TypeParam, cpu_cell>(one_node(2), [](auto& port, auto mine, auto theirs) {
    static_cast<void>(port.cpu_fetch_add(mine, 1));
    return port.load(theirs);
  });
}

TYPED_TEST(contract, C14_a_cpu_swap_keeps_loads_behind_it) {
  store_buffering<TypeParam, cpu_cell>(one_node(2), [](auto& port, auto mine, auto theirs) {
    static_cast<void>(port.cpu_swap(mine, 1));
    return port.load(theirs);
  });
}

TYPED_TEST(contract, C14_a_failing_cpu_compare_swap_orders_as_well) {
  store_buffering<TypeParam, cpu_cell>(one_node(2), [](auto& port, auto mine, auto theirs) {
    port.store(mine, 1);
    static_cast<void>(port.cpu_compare_swap(mine, 2, 3));
    return port.load(theirs);
  });
}

// How a reader and a writer on different nodes meet: the reader counts itself with a cpu
// read-modify-write and loads the gate; the writer puts the gate, flushes and gets the count.
TYPED_TEST(contract, C14_a_cpu_rmw_and_a_flushed_put_do_not_miss_each_other) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const int n = rounds<TypeParam>(5000);
    const auto gate = take<plain_cell>(me, n).at(0);
    const auto active = take<cpu_cell>(me, n).at(0);
    const auto seen = take<plain_cell>(me, n);
    std::minstd_rand random = jitter_of(me.rank());
    rma::barrier together(me);
    for (int i = 0; i < n; ++i) {
      together.arrive_and_wait();
      jitter(random);
      word found = 0;
      if (me.rank() == 0) {
        static_cast<void>(port.cpu_fetch_add(nth(active, i), 1));
        found = port.load(nth(gate, i));
      } else {
        rma::put_now(port, nth(gate, i), 1);
        found = rma::get_now(port, nth(active, i));
      }
      port.store(nth(seen.at(me.rank()), i), found);
    }
    together.arrive_and_wait();
    for (int i = 0; i < n; ++i)
      require(port.load(nth(seen.at(me.rank()), i)) != 0 ||
                  rma::get_now(port, nth(seen.at(1 - me.rank()), i)) != 0,
              "the reader saw the gate closed or the writer saw the reader");
  });
}

// A load neither completes nor waits for the own posted put to the same cell: both values are fine
// before the flush, one after.
TYPED_TEST(contract, C15_a_load_does_not_wait_for_posted_operations) {
  run_on<TypeParam>(one_node(1), [](auto& me) {
    auto& port = me.port();
    const auto cell = take<plain_cell>(me);
    for (word i = 1; i <= static_cast<word>(rounds<TypeParam>(100)); ++i) {
      port.put(cell, i);
      const word early = port.load(cell);
      require(early == i || early == i - 1, "before the flush the old value or the new one");
      port.flush(0);
      require(port.load(cell) == i, "after it the new one");
    }
  });
}

}  // namespace
}  // namespace lockflight::test
