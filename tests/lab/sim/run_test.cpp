// The run around the ranks: the ways in which it ends, and its messages.
#include <gtest/gtest.h>

#include "lab/sim/run.hpp"
#include "lockflight/rma/participant.hpp"
#include "tests/support/made_up_machine.hpp"

namespace lockflight::test {
namespace {

using rma::plain_cell;

template <class Body>
std::string complaint(const rma::topology& machine, Body body) {
  const auto profile = made_up_machine();
  try {
    sim::run_ports({.profile = profile, .machine = machine, .words_per_rank = 4096}, body);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "none";
}

TEST(run, names_who_waits_for_what_when_nobody_can_go_on) {
  const std::string why = complaint(rma::topology::balanced({2, 1}), [](sim::port& p) {
    if (p.rank() == 0) std::ignore = p.await(plain_cell{0, 24}, rma::equals(7));
    if (p.rank() == 1) std::ignore = p.receive();
  });
  EXPECT_NE(why.find("no rank can go on after"), std::string::npos) << why;
  EXPECT_NE(why.find("rank 0 waits for cell 24 of rank 0, which is 0x0"), std::string::npos) << why;
  EXPECT_NE(why.find("rank 1 waits for a message"), std::string::npos) << why;
}

TEST(run, counts_those_that_it_does_not_name) {
  const std::string why = complaint(rma::topology::flat(64), [](sim::port& p) {
    std::ignore = p.await(plain_cell{p.rank(), 24}, rma::equals(7));
  });
  EXPECT_NE(why.find("and 60 more"), std::string::npos) << why;
}

TEST(run, refuses_immediate_access_to_another_node) {
  const std::string why = complaint(rma::topology::balanced({2, 1}), [](sim::port& p) {
    if (p.rank() == 0) std::ignore = p.load(plain_cell{1, 24});
  });
  EXPECT_NE(why.find("C10"), std::string::npos) << why;
}

TEST(run, refuses_cells_that_are_not_there) {
  for (const plain_cell wrong :
       {plain_cell{0, 0}, plain_cell{0, 4096}, plain_cell{2, 8}, plain_cell{-1, 8}}) {
    const std::string why =
        complaint(rma::topology::flat(2), [&](sim::port& p) { p.put(wrong, 1); });
    EXPECT_NE(why.find("no such cell"), std::string::npos) << why;
  }
}

TEST(run, refuses_places_that_are_not_there) {
  const auto profile = made_up_machine();
  const auto machine = rma::topology::balanced({2, 1});
  const auto complain = [&](std::vector<std::uint32_t> places) -> std::string {
    try {
      sim::run_ports({.profile = profile, .machine = machine, .places = std::move(places)},
                     [](sim::port&) {});
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_EQ(complain({5, 1023}), "none");
  EXPECT_EQ(complain({5, 1024}), "node 1024, and made-up has 1024");
  EXPECT_EQ(complain({5}), "places for 1 nodes, and there are 2");
}

TEST(run, refuses_machines_that_are_too_large) {
  EXPECT_NE(complaint(rma::topology::flat(65), [](sim::port&) {}).find("has 64 cores"),
            std::string::npos);
  EXPECT_NE(complaint(rma::topology::balanced({1025, 1}), [](sim::port&) {}).find("has 1024"),
            std::string::npos);
}

TEST(run, ends_when_its_watch_throws) {
  const auto profile = made_up_machine();
  const auto endless = [](sim::port& p) {
    while (p.load(plain_cell{p.rank(), 24}) == 0) p.pause(100);
  };
  struct enough {};
  EXPECT_THROW(sim::run_ports(
                   {.profile = profile, .machine = rma::topology::flat(2), .words_per_rank = 4096},
                   endless, [] { throw enough(); }),
               enough);
}

// C19: a rank may wait for something that is not a cell.
TEST(run, a_pause_lets_others_run) {
  bool said = false;
  const std::string why = complaint(rma::topology::flat(2), [&](sim::port& p) {
    if (p.rank() == 0)
      while (!said) p.pause(0);
    p.pause(1'000);
    said = true;
  });
  EXPECT_EQ(why, "none");
}

// Objects on the ranks' stacks are destroyed when the run fails.
TEST(run, unwinds_the_others_when_a_rank_fails) {
  const auto kept = std::make_shared<int>(0);
  const std::string why = complaint(rma::topology::flat(3), [&](sim::port& p) {
    const auto mine = kept;
    if (p.rank() == 2) throw std::runtime_error("enough of this");
    std::ignore = p.await(plain_cell{p.rank(), 24}, rma::equals(7));
  });
  EXPECT_EQ(why, "rank 2: enough of this");
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace lockflight::test
