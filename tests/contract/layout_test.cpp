// C20 to C26: where cells live, queue nodes, references.
#include <set>
#include <stdexcept>
#include <vector>

#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

TYPED_TEST_SUITE(contract, contract_fabrics, fabric_names);
const bool modes_of_layout = run_in(contract_modes);

TYPED_TEST(contract, C20_the_same_requests_get_the_same_cells_everywhere) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    constexpr int requests = 40;
    const auto answers = take<plain_cell>(me, requests);
    for (int i = 0; i < requests; ++i) {
      const int count = i * i % 23 + 1;
      const std::uint32_t index = i % 3 == 0   ? take<nic_cell>(me, count).index
                                  : i % 3 == 1 ? take<cpu_cell>(me, count).index
                                               : take<plain_cell>(me, count).index;
      port.store(nth(answers.at(me.rank()), i), index);
    }
    rma::barrier together(me);
    together.arrive_and_wait();
    const rank_t next = (me.rank() + 1) % me.machine().ranks();
    for (int i = 0; i < requests; ++i)
      require(
          rma::get_now(port, nth(answers.at(next), i)) == port.load(nth(answers.at(me.rank()), i)),
          "indices are the same on every rank");
  });
}

// One cell after another, the ranks' cells are words of their own.
TYPED_TEST(contract, C20_cells_do_not_overlap) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    constexpr int count = 100;
    const auto cells = take<plain_cell>(me, count);
    const auto mark = [](rank_t rank, int i) { return static_cast<word>(rank * count + i + 1); };
    rma::barrier together(me);
    for (int i = 0; i < count; ++i) port.store(nth(cells.at(me.rank()), i), mark(me.rank(), i));
    together.arrive_and_wait();
    for (rank_t r = 0; r < me.machine().ranks(); ++r)
      for (int i = 0; i < count; ++i)
        require(rma::get_now(port, nth(cells.at(r), i)) == mark(r, i), "each cell is its own");
  });
}

TYPED_TEST(contract, C22_cells_start_as_zero) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    // Before the first write: the whole segment, the last word included.
    const std::uint32_t count = me.cells().limit() - me.cells().used() - rma::line_words;
    const auto cells = me.cells().template take<plain_cell>(count);
    const auto step = std::max(1u, count / 5000);
    for (std::uint32_t i = 0; i < count; i += step)
      require(port.load((cells + i).at(me.rank())) == 0, "own cells start as 0");
    require(rma::get_now(port, cells + (count - 1)) == 0, "the last one as well");
    const rank_t next = (me.rank() + 1) % me.machine().ranks();
    for (std::uint32_t i = 0; i < count; i += 16 * step)
      require(rma::get_now(port, (cells + i).at(next)) == 0, "others' cells start as 0");
  });
}

TYPED_TEST(contract, C24_the_last_word_of_a_segment_is_there) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const std::uint32_t rest = me.cells().limit() - me.cells().used() - rma::line_words;
    const auto last = me.cells().template take<nic_cell>(rest) + (rest - 1);
    const rank_t other = 1 - me.rank();
    port.add(last.at(other), 5);
    port.flush(other);
    port.await(last.at(me.rank()), rma::equals(5));
    bool full = false;
    try {
      static_cast<void>(me.cells().template take<plain_cell>(2 * rma::line_words));
    } catch (const std::length_error&) {
      full = true;
    }
    require(full, "a segment has an end");
  });
}

TYPED_TEST(contract, C25_lines_are_the_participants_own) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    rma::barrier together(me);
    const rma::queue_node mine = me.take_queue_node();
    require(mine.first.home == me.rank(), "a line lies in its owner's segment");
    for (std::uint32_t i = 0; i < rma::line_words; ++i)
      port.store(mine[i], static_cast<word>(me.rank()) * 100 + i + 1);
    together.arrive_and_wait();
    for (std::uint32_t i = 0; i < rma::line_words; ++i) {
      require(port.load(mine[i]) == static_cast<word>(me.rank()) * 100 + i + 1,
              "nobody else got that line");
      port.store(mine[i], 0);
    }
    me.give_back(mine);
  });
}

// ---- the layout and the participant by themselves: no fabric needed ----

TEST(contract_layout, C21_index_zero_is_never_given_out) {
  rma::layout in(1024);
  EXPECT_GE(in.take<plain_cell>(1).index, rma::line_words);
  EXPECT_GE(in.take<nic_cell>(0).index, rma::line_words);
}

TEST(contract_layout, C23_blocks_start_on_a_line_and_do_not_overlap) {
  rma::layout in(1u << 16);
  std::uint32_t end = 0;
  for (std::uint32_t count = 0; count < 40; ++count) {
    const auto block = in.take<cpu_cell>(count);
    EXPECT_EQ(block.home, 0);
    EXPECT_EQ(block.index % rma::line_words, 0u);
    EXPECT_GE(block.index, end);
    EXPECT_EQ(in.used(), block.index + count);
    end = block.index + count;
  }
}

TEST(contract_layout, C24_a_full_segment_refuses_and_stays_as_it_was) {
  rma::layout in(64);
  EXPECT_EQ(in.take<plain_cell>(40).index, 8u);
  const std::uint32_t used = in.used();
  EXPECT_THROW(static_cast<void>(in.take<plain_cell>(17)), std::length_error);
  EXPECT_THROW(static_cast<void>(in.take<plain_cell>(65)), std::length_error);
  EXPECT_THROW(static_cast<void>(in.take<plain_cell>(UINT32_MAX)), std::length_error);
  EXPECT_EQ(in.used(), used);
  EXPECT_EQ(in.take<plain_cell>(16).index, 48u) << "what is left can still be had";
  EXPECT_THROW(static_cast<void>(in.take<plain_cell>(1)), std::length_error);
  try {
    static_cast<void>(in.take<plain_cell>(3));
    FAIL();
  } catch (const std::length_error& e) {
    EXPECT_STREQ(e.what(), "segments are full: 3 cells asked, 0 of 64 left");
  }
}

TEST(contract_layout, C24_segments_smaller_than_a_line_hold_nothing) {
  for (const std::uint32_t words : {0u, 1u, rma::line_words}) {
    rma::layout in(words);
    EXPECT_THROW(static_cast<void>(in.take<plain_cell>(1)), std::length_error) << words;
  }
}

// Indices are 32 bits: at the very end the round-up must not come back to index 0.
TEST(contract_layout, C24_the_largest_segment_ends_too) {
  rma::layout in(UINT32_MAX);
  EXPECT_EQ(in.take<plain_cell>(UINT32_MAX - 15).index, 8u);
  EXPECT_EQ(in.take<plain_cell>(1).index, UINT32_MAX - 7);
  EXPECT_THROW(static_cast<void>(in.take<plain_cell>(1)), std::length_error);
}

/// A participant whose port is never asked for anything but its rank.
template <class Body>
void with_participant(Body body) {
  shm::run_ports({.machine = one_node(2), .threads = true}, [&](shm::port& port) {
    rma::participant<shm::port> me(port, 1024);
    if (me.rank() == 1) body(me);
  });
}

TEST(contract_layout, C25_as_many_lines_as_locks_nest) {
  with_participant([](auto& me) {
    std::set<std::uint32_t> starts;
    std::vector<rma::queue_node> taken;
    for (int i = 0; i < me.most_nested; ++i) {
      taken.push_back(me.take_queue_node());
      require(taken.back().first.index % rma::line_words == 0, "a line is a cache line");
      require(starts.insert(taken.back().first.index).second, "each line is another one");
    }
    bool refused = false;
    try {
      static_cast<void>(me.take_queue_node());
    } catch (const std::length_error&) {
      refused = true;
    }
    require(refused, "the 33rd line is refused");
    for (const int i : {17, 3, 31}) me.give_back(taken[static_cast<std::size_t>(i)]);
    for (int i = 0; i < 3; ++i)
      require(starts.count(me.take_queue_node().first.index) == 1,
              "lines given back are used again");
  });
}

TEST(contract_layout, C25_a_segment_too_small_for_the_lines_is_refused) {
  EXPECT_THROW(shm::run({.machine = one_node(1), .threads = true, .words_per_rank = 64},
                        [](rma::participant<shm::port>&) {}),
               shm::rank_failed);
}

TEST(contract_layout, C26_references_pack_and_unpack) {
  for (const rank_t home : {0, 1, 77, INT32_MAX})
    for (const std::uint32_t index : {1u, 8u, 12345u, UINT32_MAX}) {
      const nic_cell cell{home, index};
      EXPECT_EQ(rma::from_word<nic_cell>(rma::to_word(cell)), cell);
      EXPECT_NE(rma::to_word(cell), rma::null_ref);
    }
  EXPECT_EQ(rma::to_word(plain_cell{0, 0}), rma::null_ref);
  EXPECT_EQ((plain_cell{3, 8} + 5).at(4), (plain_cell{4, 13}));
}

}  // namespace
}  // namespace lockflight::test
