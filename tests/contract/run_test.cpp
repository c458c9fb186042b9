// C31 to C36: the run around the ports, and the barrier.
#include <stdexcept>

#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

TYPED_TEST_SUITE(contract, contract_fabrics, fabric_names);
const bool modes_of_run = run_in(contract_modes) && run_in(waiting_modes);

TYPED_TEST(contract, C31_every_rank_runs_once_and_knows_who_it_is) {
  run_on<TypeParam>(nodes(3, 2), [](auto& me) {
    auto& port = me.port();
    require(port.machine().ranks() == 6 && port.machine().nodes() == 3, "the machine as given");
    require(port.rank() == me.rank() && me.rank() >= 0 && me.rank() < 6, "a rank of it");
    const auto runs = take<nic_cell>(me);
    rma::barrier together(me);
    port.add(runs.at(me.rank()), 1);
    together.arrive_and_wait();
    for (rank_t r = 0; r < 6; ++r)
      require(rma::get_now(port, runs.at(r)) == 1, "each rank runs once");
  });
}

// Every rank leaves a mark at every rank before the barrier; after it, all marks are there, and at
// most one round newer.
TYPED_TEST(contract, C34_a_barrier_lets_nobody_pass_early) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    run_on<TypeParam>(nodes(ranks, 1), [](auto& me) {
      auto& port = me.port();
      const auto marks = take<plain_cell>(me);
      rma::barrier together(me);
      for (word episode = 1; episode <= static_cast<word>(rounds<TypeParam>(30)); ++episode) {
        port.store(marks.at(me.rank()), episode);
        together.arrive_and_wait();
        for (rank_t r = 0; r < me.machine().ranks(); ++r) {
          const word seen = rma::get_now(port, marks.at(r));
          require(seen == episode || seen == episode + 1, "all have arrived, none is ahead");
        }
      }
    });
  }
}

TYPED_TEST(contract, C34_a_barrier_completes_what_was_posted) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    const int ranks = me.machine().ranks();
    const auto mail = take<plain_cell>(me, ranks);
    rma::barrier together(me);
    for (word episode = 1; episode <= static_cast<word>(rounds<TypeParam>(50)); ++episode) {
      for (rank_t to = 0; to < ranks; ++to) port.put(nth(mail.at(to), me.rank()), episode);
      together.arrive_and_wait();  // no flush before it
      for (int from = 0; from < ranks; ++from)
        require(port.load(nth(mail.at(me.rank()), from)) == episode, "the barrier has flushed");
      together.arrive_and_wait();
    }
  });
}

TYPED_TEST(contract, C34_a_barrier_with_more_ranks_than_cores) {
  run_on<TypeParam>(nodes(crowd() / 2, 2), [](auto& me) {
    rma::barrier together(me);
    for (int i = 0; i < rounds<TypeParam>(50); ++i) together.arrive_and_wait();
  });
}

TYPED_TEST(contract, C34_barriers_do_not_disturb_each_other) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    rma::barrier one(me);
    rma::barrier two(me);
    const auto count = take<nic_cell>(me);
    for (word i = 1; i <= static_cast<word>(rounds<TypeParam>(20)); ++i) {
      port.add(count, 1);
      one.arrive_and_wait();
      require(rma::get_now(port, count) == 4 * i, "one");
      two.arrive_and_wait();
    }
  });
}

// Rank 0 leaves at once; the others go on with its cells.
TYPED_TEST(contract, C35_cells_outlive_their_owners_body) {
  run_on<TypeParam>(nodes(2, 2), [](auto& me) {
    auto& port = me.port();
    const auto cell = take<nic_cell>(me).at(0);
    const auto turn = take<plain_cell>(me);
    if (me.rank() == 0) return;
    for (word i = 0; i < static_cast<word>(rounds<TypeParam>(50)); ++i) {
      if (me.rank() > 1 || i > 0) port.await(turn.at(me.rank()), rma::equals(i + 1));
      require(rma::fetch_add_now(port, cell, 1) == 3 * i + static_cast<word>(me.rank()) - 1,
              "cells can be reached until all have returned");
      rma::put_now(port, turn.at(me.rank() % 3 + 1), me.rank() == 3 ? i + 2 : i + 1);
    }
  });
}

/// Rank 1 throws while rank 0 waits in `wait` for a value that never comes.
template <class Fabric, class Wait>
void expect_the_run_to_end(Wait wait) {
  if constexpr (requires { Fabric::survives_failure; }) {
    if (!Fabric::survives_failure)
      GTEST_SKIP() << "C36: a failing rank takes the program down on " << Fabric::name;
  }
  std::string why;
  try {
    Fabric::run(nodes(2, 1), [wait](auto& me) {
      const auto never = take<plain_cell>(me);
      if (me.rank() == 1) throw std::runtime_error("rank one has had enough");
      wait(me.port(), never);
    });
  } catch (const std::exception& e) {
    why = e.what();
  }
  EXPECT_NE(why.find("rank one has had enough"), std::string::npos) << why;
}

template <class Fabric>
class failing_run : public ::testing::Test {};
TYPED_TEST_SUITE(failing_run, contract_fabrics, fabric_names);

TYPED_TEST(failing_run, C36_others_stop_awaiting) {
  expect_the_run_to_end<TypeParam>(
      [](auto& port, plain_cell never) { port.await(never, rma::equals(1)); });
}

// Also a rank with long pauses between its polls.
TYPED_TEST(failing_run, C36_others_stop_polling) {
  expect_the_run_to_end<TypeParam>([](auto& port, plain_cell never) {
    port.poll(never.at(1), rma::equals(1), {1'000, 500'000'000});
  });
}

}  // namespace
}  // namespace lockflight::test
