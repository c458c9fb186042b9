// C5 to C9: posted operations and the flush that completes them.
#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

TYPED_TEST_SUITE(contract, contract_fabrics, fabric_names);
const bool modes_of_posted = run_in(contract_modes);

TYPED_TEST(contract, C05_takes_effect_between_call_and_flush) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const auto cell = take<plain_cell>(me);
    rma::barrier together(me);
    if (me.rank() == 0) require(port.load(cell) == 0, "not before the call");
    together.arrive_and_wait();
    if (me.rank() == 1) {
      word value = 7;
      port.put(cell, value);
      value = 8;  // C8: arguments are taken at the call
      port.flush(0);
      require(value == 8, "the argument is the caller's");
    }
    together.arrive_and_wait();
    if (me.rank() == 0) require(port.load(cell) == 7, "not after the flush");
  });
}

// Several operations on one cell may have any result that some order explains.
TYPED_TEST(contract, C06_operations_between_flushes_may_take_any_order) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const auto cell = take<plain_cell>(me).at(1 - me.rank());
    const auto counter = take<nic_cell>(me).at(1 - me.rank());
    constexpr word first = 1;
    constexpr word second = 2;
    for (int i = 0; i < rounds<TypeParam>(100); ++i) {
      rma::put_now(port, cell, 0);
      word seen = 99;
      port.put(cell, first);
      port.get(cell, seen);
      port.put(cell, second);
      port.flush(cell.home);
      const word left = rma::get_now(port, cell);
      require(seen <= second, "a get sees what was there or what is being put");
      require(left == first || left == second, "one of the puts is the last");
    }
    constexpr int several = 8;
    std::array<word, several> before{};
    for (word& b : before) port.fetch_add(counter, 1, b);
    port.flush(counter.home);
    std::sort(before.begin(), before.end());
    for (word i = 0; i < several; ++i)
      require(before[i] == i, "posted fetch_adds take effect one after the other");
  });
}

// Its words come from the right cells, each read by itself, and nothing beside them is written.
TYPED_TEST(contract, C42_a_get_of_lines_is_a_get_of_each) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    constexpr std::size_t lines = 40;
    constexpr word beside = 9'999;
    const auto block = take<cpu_cell>(me, lines * rma::line_words);
    rma::barrier together(me);
    for (const rank_t home : {0, 1, 3}) {
      const cpu_cell first = block.at(home) + 3;
      if (me.rank() == home)
        for (std::uint32_t i = 0; i < lines; ++i)
          port.store(first + i * rma::line_words, 100 * static_cast<word>(home) + i);
      together.arrive_and_wait();
      for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{3}, lines}) {
        std::array<word, lines + 1> seen{};
        seen.fill(beside);
        rma::get_lines(port, first, std::span(seen).first(n));
        port.flush(home);
        for (std::size_t i = 0; i < seen.size(); ++i)
          require(seen[i] == (i < n ? 100 * static_cast<word>(home) + i : beside), "a word each");
      }
      together.arrive_and_wait();
    }
  });
}

// A get of lines is not served before an earlier store (C12), so of two participants at least one
// sees the other; nor does it miss a write that was flushed before it.
TYPED_TEST(contract, C42_a_get_of_lines_sees_what_came_before) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const auto mine = take<cpu_cell>(me, 2 * rma::line_words);
    const auto theirs = take<cpu_cell>(me, 2 * rma::line_words).at(1 - me.rank());
    rma::barrier together(me);
    for (int i = 1; i <= rounds<TypeParam>(200); ++i) {
      const auto value = static_cast<word>(i);
      rma::put_now(port, theirs + rma::line_words, value);
      std::array<word, 2> seen{};
      rma::get_lines(port, theirs, std::span(seen));
      port.flush(theirs.home);
      require(seen[1] == value, "an own put that was flushed");
      port.store(mine.at(me.rank()), value);
      rma::get_lines(port, mine.at(1 - me.rank()), std::span(seen));
      port.flush();
      if (seen[0] != value) port.store(mine.at(me.rank()) + rma::line_words + 1, value);
      together.arrive_and_wait();
      const cpu_cell missed{1 - me.rank(), mine.index + rma::line_words + 1};
      require(seen[0] == value || rma::get_now(port, missed) != value, "one sees the other");
      together.arrive_and_wait();
    }
  });
}

TYPED_TEST(contract, C07_flush_makes_puts_visible) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const int n = rounds<TypeParam>(500);
    const auto data = take<plain_cell>(me, n).at(0);
    const auto flag = take<plain_cell>(me).at(0);
    for (int i = 0; i < n; ++i) {
      const word value = static_cast<word>(i) + 1;
      if (me.rank() == 1) {
        rma::put_now(port, nth(data, i), value);
        rma::put_now(port, flag, value);
      } else {
        port.await(flag, [value](word now) { return now >= value; });
        require(port.load(nth(data, i)) == value, "the target's CPU sees a flushed put");
      }
    }
  });
}

TYPED_TEST(contract, C07_flush_completes_read_modify_writes) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const one_of_each cells = one_of_each::take_from(me);
    const auto flag = take<nic_cell>(me).at(0);
    rma::barrier together(me);
    for (word i = 0; i < static_cast<word>(rounds<TypeParam>(200)); ++i) {
      if (me.rank() == 1) {
        port.add(cells.nic, 1);
        port.flush(0);
        port.add(flag, 1);
        port.flush(0);
      } else {
        port.await(flag, [i](word now) { return now > i; });
        require(port.load(cells.nic) > i, "the target's CPU sees a flushed add");
      }
    }
  });
}

TYPED_TEST(contract, C07_one_flush_completes_many_targets) {
  run_on<TypeParam>(nodes(3, 2), [](auto& me) {
    auto& port = me.port();
    const int ranks = me.machine().ranks();
    constexpr int each = 16;
    const auto mail = take<plain_cell>(me, ranks * each);
    const auto arrived = take<nic_cell>(me);
    for (rank_t to = 0; to < ranks; ++to)
      for (int i = 0; i < each; ++i)
        port.put(nth(mail.at(to), me.rank() * each + i), static_cast<word>(me.rank() + i + 1));
    port.flush();
    for (rank_t to = 0; to < ranks; ++to) port.add(arrived.at(to), 1);
    port.flush();
    port.await(arrived.at(me.rank()), rma::equals(static_cast<word>(ranks)));
    for (rank_t from = 0; from < ranks; ++from)
      for (int i = 0; i < each; ++i)
        require(
            port.load(nth(mail.at(me.rank()), from * each + i)) == static_cast<word>(from + i + 1),
            "one flush completes the puts to all targets");
  });
}

TYPED_TEST(contract, C07_flush_of_a_rank_completes_what_went_there) {
  run_on<TypeParam>(nodes(3, 1), [](auto& me) {
    auto& port = me.port();
    const auto data = take<plain_cell>(me);
    const auto flag = take<plain_cell>(me);
    if (me.rank() == 0) {
      port.put(data.at(1), 5);
      port.put(data.at(2), 6);
      port.flush(1);
      port.put(flag.at(1), 1);
      port.flush(1);
      port.flush(2);
      port.put(flag.at(2), 1);
      port.flush(2);
    } else {
      port.await(flag.at(me.rank()), rma::equals(1));
      require(port.load(data.at(me.rank())) == static_cast<word>(4 + me.rank()),
              "flush(rank) completes what went to that rank");
    }
  });
}

TYPED_TEST(contract, C07_a_flush_with_nothing_to_do_returns) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    me.port().flush();
    for (rank_t r = 0; r < me.machine().ranks(); ++r) me.port().flush(r);
    me.port().flush();
  });
}

// Store buffering over the network: each rank writes to the other's memory, flushes, and reads its
// own. One of them must see the other's write.
TYPED_TEST(contract, C07_what_follows_a_flush_comes_after_it) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const int n = rounds<TypeParam>(3000);
    const auto flags = take<plain_cell>(me, n);
    const auto seen = take<plain_cell>(me, n);
    const rank_t other = 1 - me.rank();
    std::minstd_rand random = jitter_of(me.rank());
    rma::barrier together(me);
    for (int i = 0; i < n; ++i) {
      together.arrive_and_wait();
      jitter(random);
      rma::put_now(port, nth(flags.at(other), i), 1);
      port.store(nth(seen.at(me.rank()), i), port.load(nth(flags.at(me.rank()), i)));
    }
    together.arrive_and_wait();
    for (int i = 0; i < n; ++i)
      require(port.load(nth(seen.at(me.rank()), i)) != 0 ||
                  rma::get_now(port, nth(seen.at(other), i)) != 0,
              "a load after a flush is not served before it");
  });
}

TYPED_TEST(contract, C08_results_are_valid_after_the_flush) {
  run_on<TypeParam>(nodes(3, 1), [](auto& me) {
    auto& port = me.port();
    const auto plain = take<plain_cell>(me);
    const auto nic = take<nic_cell>(me, 4);
    constexpr word start = 10;
    rma::put_now(port, plain.at(me.rank()), start + static_cast<word>(me.rank()));
    for (int i = 0; i < 4; ++i) rma::put_now(port, nth(nic.at(me.rank()), i), start);
    rma::barrier together(me);
    together.arrive_and_wait();
    if (me.rank() == 0) {
      std::array<word, 3> got{};
      for (rank_t r = 0; r < 3; ++r) port.get(plain.at(r), got[static_cast<std::size_t>(r)]);
      word added = 0, swapped = 0, replaced = 0, kept = 0;
      port.fetch_add(nth(nic.at(1), 0), 5, added);
      port.swap(nth(nic.at(2), 1), 6, swapped);
      port.compare_swap(nth(nic.at(1), 2), start, 7, replaced);
      port.compare_swap(nth(nic.at(2), 3), start + 1, 8, kept);
      port.flush();
      require(got == std::array<word, 3>{start, start + 1, start + 2}, "gets from three targets");
      require(added == start && swapped == start && replaced == start && kept == start,
              "each read-modify-write returns what the cell held");
      require(rma::get_now(port, nth(nic.at(1), 0)) == start + 5, "fetch_add adds");
      require(rma::get_now(port, nth(nic.at(2), 1)) == 6, "swap replaces");
      require(rma::get_now(port, nth(nic.at(1), 2)) == 7, "compare_swap replaces what it expects");
      require(rma::get_now(port, nth(nic.at(2), 3)) == start, "and nothing else");
    }
  });
}

TYPED_TEST(contract, C08_posted_operations_reach_the_own_rank_too) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const one_of_each mine = one_of_each::take_from(me).at(me.rank());
    for (const writing how : {writing::put_plain, writing::put_cpu, writing::put_nic}) {
      const word before = how == writing::put_plain ? 3 : how == writing::put_cpu ? 4 : 5;
      increment(port, how, mine, before);
    }
    require(port.load(mine.plain) == 4 && port.load(mine.cpu) == 5 && port.load(mine.nic) == 6,
            "loopback puts are visible to the own CPU after the flush");
    for (const writing how :
         {writing::add, writing::fetch_add, writing::swap, writing::compare_swap}) {
      const word before = port.load(mine.nic);
      increment(port, how, mine, before);
      require(port.load(mine.nic) == before + 1, "and so are loopback read-modify-writes");
    }
  });
}

}  // namespace
}  // namespace lockflight::test
