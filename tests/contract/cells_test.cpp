// C1 to C4: what a cell is, its classes, and what is atomic with what.
#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

TYPED_TEST_SUITE(contract, contract_fabrics, fabric_names);
const bool modes_of_cells = run_in(contract_modes);

constexpr int half = 32;

/// A word whose halves are equal: a torn one shows.
constexpr word twin(int value) {
  return (static_cast<word>(value) << half) | static_cast<word>(value);
}
constexpr bool torn(word value) { return value >> half != (value & 0xffffffff); }

TYPED_TEST(contract, C01_reads_and_writes_never_tear) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    const one_of_each cells = one_of_each::take_from(me);
    rma::barrier together(me);
    together.arrive_and_wait();
    for (int i = 1; i <= rounds<TypeParam>(1000); ++i) {
      word seen[3] = {0, 0, 0};
      switch (me.rank()) {
        case 0:
          port.store(cells.plain, twin(i));
          port.store(cells.cpu, twin(~i & 0xffff));
          break;
        case 1:
          seen[0] = port.load(cells.plain), seen[1] = port.load(cells.cpu);
          seen[2] = port.load(cells.nic);
          break;
        case 2:
          port.put(cells.plain, twin(~i & 0xffff)), port.put(cells.cpu, twin(i));
          port.put(cells.nic, twin(i));
          port.flush(0);
          break;
        default:
          port.get(cells.plain, seen[0]), port.get(cells.cpu, seen[1]);
          port.get(cells.nic, seen[2]);
          port.flush(0);
      }
      for (const word s : seen) require(!torn(s), "a word is read as it was written");
    }
  });
}

// All participants agree on one order of the values of a cell, so a participant that reads it again
// and again, in whatever way, never sees it go back.
TYPED_TEST(contract, C01_a_cell_never_goes_back) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    const one_of_each cells = one_of_each::take_from(me);
    rma::barrier together(me);
    together.arrive_and_wait();
    const auto last = static_cast<word>(rounds<TypeParam>(300));
    const auto watch = [&](auto cell) {
      bool here = me.machine().same_node(me.rank(), cell.home);
      for (word before = 0, now = 0, i = 0; before < last; before = now, ++i) {
        now = here && i % 2 == 0 ? port.load(cell) : rma::get_now(port, cell);
        require(now >= before, "a cell does not go back to an older value");
        port.pause(0);
      }
    };
    if (me.rank() == 0)
      for (word i = 1; i <= last; ++i) port.store(cells.plain, i);
    else
      watch(cells.plain);
    if (me.rank() == 2)
      for (word i = 1; i <= last; ++i) rma::put_now(port, cells.nic, i);
    else
      watch(cells.nic);
  });
}

template <class Port, class Cell>
constexpr bool has_cpu_rmw = requires(Port p, Cell c, word w) { p.cpu_fetch_add(c, w); } ||
                             requires(Port p, Cell c, word w) { p.cpu_swap(c, w); } ||
                             requires(Port p, Cell c, word w) { p.cpu_compare_swap(c, w, w); };
template <class Port, class Cell>
constexpr bool has_nic_rmw = requires(Port p, Cell c, word w) { p.add(c, w); } ||
                             requires(Port p, Cell c, word w) { p.fetch_add(c, w, w); } ||
                             requires(Port p, Cell c, word w) { p.swap(c, w, w); } ||
                             requires(Port p, Cell c, word w) { p.compare_swap(c, w, w, w); };

// The compiler's own refusals are in tests/compile_fail.
TYPED_TEST(contract, C02_the_class_of_a_cell_says_who_may_modify_it) {
  using port = typename TypeParam::port_type;
  static_assert(has_cpu_rmw<port, cpu_cell> && !has_nic_rmw<port, cpu_cell>);
  static_assert(has_nic_rmw<port, nic_cell> && !has_cpu_rmw<port, nic_cell>);
  static_assert(!has_cpu_rmw<port, plain_cell> && !has_nic_rmw<port, plain_cell>);
}

/// Adds 1 by compare-and-swap, with as many attempts as it takes.
template <class Port>
void increment_by_cas(Port& p, nic_cell at) {
  for (word expected = 0, found = 0;; expected = found) {
    found = rma::compare_swap_now(p, at, expected, expected + 1);
    if (found == expected) return;
  }
}
template <class Port>
void increment_by_cas(Port& p, cpu_cell at) {
  for (word expected = p.load(at), found = 0;; expected = found) {
    found = p.cpu_compare_swap(at, expected, expected + 1);
    if (found == expected) return;
  }
}

template <class Fabric>
void nic_kinds_together(const rma::topology& machine, int wanted) {
  run_on<Fabric>(machine, [wanted](auto& me) {
    auto& port = me.port();
    const auto sum = take<nic_cell>(me);
    rma::barrier together(me);
    const int n = rounds<Fabric>(wanted);
    together.arrive_and_wait();
    for (int i = 0; i < n; ++i) {
      port.add(sum, 1);
      static_cast<void>(rma::fetch_add_now(port, sum, 1));
      increment_by_cas(port, sum);
    }
    together.arrive_and_wait();
    require(rma::get_now(port, sum) == static_cast<word>(3 * n * me.machine().ranks()),
            "no read-modify-write on a nic cell is lost");
  });
}

TYPED_TEST(contract, C03_nic_rmws_are_atomic_with_each_other) {
  nic_kinds_together<TypeParam>(nodes(2, 2), 200);
}

TYPED_TEST(contract, C03_nic_rmws_are_atomic_with_more_ranks_than_cores) {
  nic_kinds_together<TypeParam>(nodes(2, crowd() / 2), 50);
}

TYPED_TEST(contract, C03_fetch_add_hands_out_each_number_once) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    const int n = rounds<TypeParam>(200);
    const int all = n * me.machine().ranks();
    const auto next = take<nic_cell>(me).at(me.machine().ranks() - 1);
    const auto drawn = take<nic_cell>(me, all);
    rma::barrier together(me);
    together.arrive_and_wait();
    for (int i = 0; i < n; ++i) {
      const word ticket = rma::fetch_add_now(port, next, 1);
      require(ticket < static_cast<word>(all), "fetch_add returns what the cell held");
      port.add(nth(drawn, static_cast<int>(ticket)), 1);
    }
    together.arrive_and_wait();
    for (int i = me.rank(); i < all; i += me.machine().ranks())
      require(rma::get_now(port, nth(drawn, i)) == 1, "each number is handed out once");
  });
}

// Tokens wander between hands and the cell; none is doubled, none is lost.
TYPED_TEST(contract, C03_swap_conserves_tokens) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    const auto shelf = take<nic_cell>(me).at(1);
    const auto in_hands = take<nic_cell>(me);
    rma::barrier together(me);
    together.arrive_and_wait();
    word hand = word{1} << (8 * me.rank());
    for (int i = 0; i < rounds<TypeParam>(500); ++i) hand = rma::swap_now(port, shelf, hand);
    port.add(in_hands, hand);
    together.arrive_and_wait();
    require(rma::get_now(port, in_hands) + rma::get_now(port, shelf) == 0x01010101,
            "swap conserves tokens");
  });
}

TYPED_TEST(contract, C03_cpu_rmws_are_atomic_with_each_other) {
  run_on<TypeParam>(one_node(4), [](auto& me) {
    auto& port = me.port();
    const auto sum = take<cpu_cell>(me).at(3);
    const auto shelf = take<cpu_cell>(me);
    const auto in_hands = take<cpu_cell>(me);
    rma::barrier together(me);
    together.arrive_and_wait();
    const int n = rounds<TypeParam>(1000);
    word hand = word{1} << (8 * me.rank());
    for (int i = 0; i < n; ++i) {
      static_cast<void>(port.cpu_fetch_add(sum, 1));
      increment_by_cas(port, sum);
      hand = port.cpu_swap(shelf, hand);
    }
    static_cast<void>(port.cpu_fetch_add(in_hands, hand));
    together.arrive_and_wait();
    require(port.load(sum) == static_cast<word>(2 * n * 4),
            "no read-modify-write on a cpu cell is lost");
    require(port.load(in_hands) + port.load(shelf) == 0x01010101, "cpu_swap conserves tokens");
  });
}

// One rank alone writes the upper half of a word, others modify the lower half. A read-modify-write
// that is not atomic with the write would bring the old upper half back.
TYPED_TEST(contract, C03_a_put_is_not_swallowed_by_nic_rmws) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    const auto cell = take<nic_cell>(me);
    rma::barrier together(me);
    together.arrive_and_wait();
    for (int i = 1; i <= rounds<TypeParam>(500); ++i) {
      if (me.rank() == 2) {
        rma::put_now(port, cell, static_cast<word>(i) << half);
        require(rma::get_now(port, cell) >> half == static_cast<word>(i), "a put stays");
      } else {
        port.add(cell, 1);
        increment_by_cas(port, cell);
      }
    }
    port.flush();
  });
}

TYPED_TEST(contract, C03_a_store_or_put_is_not_swallowed_by_cpu_rmws) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    const auto stored = take<cpu_cell>(me);
    const auto put = take<cpu_cell>(me);
    rma::barrier together(me);
    together.arrive_and_wait();
    for (int i = 1; i <= rounds<TypeParam>(1000); ++i) {
      const word upper = static_cast<word>(i) << half;
      if (me.rank() == 0) {
        port.store(stored, upper);
        require(port.load(stored) >> half == static_cast<word>(i), "a store stays");
      } else if (me.rank() == 1) {
        static_cast<void>(port.cpu_fetch_add(stored, 1));
        increment_by_cas(port, stored);
        static_cast<void>(port.cpu_fetch_add(put, 1));
        increment_by_cas(port, put);
      } else if (me.rank() == 2) {
        rma::put_now(port, put, upper);
        require(rma::get_now(port, put) >> half == static_cast<word>(i), "a put stays");
      }
    }
  });
}

TYPED_TEST(contract, C03_compare_swap_looks_at_the_whole_word) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const auto nic = take<nic_cell>(me).at(1 - me.rank());
    const auto cpu = take<cpu_cell>(me).at(me.rank());
    const word held = twin(7);
    rma::put_now(port, nic, held);
    port.store(cpu, held);
    for (const word close : {held ^ 1, held ^ (word{1} << 63), word{7}, word{0}}) {
      require(rma::compare_swap_now(port, nic, close, 1) == held,
              "compare_swap fails on " + std::to_string(close));
      require(port.cpu_compare_swap(cpu, close, 1) == held,
              "cpu_compare_swap fails on " + std::to_string(close));
    }
    require(rma::get_now(port, nic) == held && port.load(cpu) == held, "nothing was replaced");
    require(rma::compare_swap_now(port, nic, held, ~word{0}) == held, "returns what it held");
    require(port.cpu_compare_swap(cpu, held, ~word{0}) == held, "returns what it held");
    require(rma::get_now(port, nic) == ~word{0} && port.load(cpu) == ~word{0}, "both replaced");
    port.add(nic, 2);
    port.flush(nic.home);
    require(rma::get_now(port, nic) == 1 && port.cpu_fetch_add(cpu, 2) == ~word{0} &&
                port.load(cpu) == 1,
            "sums wrap around");
  });
}

TYPED_TEST(contract, C04_a_load_sees_every_nic_operation) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const one_of_each cells = one_of_each::take_from(me);
    rma::barrier together(me);
    word held = 0;
    for (const writing how : {writing::put_nic, writing::add, writing::fetch_add, writing::swap,
                              writing::compare_swap}) {
      if (me.rank() == 1) increment(port, how, cells, held);
      ++held;
      together.arrive_and_wait();
      if (me.rank() == 0)
        require(port.load(cells.nic) == held, "a load of a nic cell sees what the network wrote");
      together.arrive_and_wait();
    }
  });
}

}  // namespace
}  // namespace lockflight::test
