// C39: ranks that are lost while the others go on. Threads cannot be killed, and a fabric that
// does not declare losses skips.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

/// A fabric need not have them.
template <class Fabric>
class contract_of_losses : public contract<Fabric> {};
TYPED_TEST_SUITE(contract_of_losses, capability_fabrics, fabric_names);
const bool modes_of_losses = run_in(contract_modes) && run_in(waiting_modes);

using body = std::array<word, 3>;

#define SKIP_WITHOUT_LOSSES                                                         \
  if constexpr (!rma::losing_port<typename TypeParam::port_type>)                   \
    GTEST_SKIP() << "C39: the fabric " << TypeParam::name << " declares no losses"; \
  else if (mode_now().threads)                                                      \
  GTEST_SKIP() << "C39: a thread cannot be killed"

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  while (true) pause();
}

/// Runs the body on every rank; exactly these ranks are lost.
template <class Fabric, class Body>
void loses(const std::vector<rank_t>& whom, const rma::topology& machine, Body play) {
  if (!fits<Fabric>(machine))
    GTEST_SKIP() << "needs " << machine.ranks() << " ranks, more than run in this mode";
  if constexpr (rma::losing_port<typename Fabric::port_type>) {
    std::vector<rank_t> lost = Fabric::run_bearing_losses(machine, play);
    std::sort(lost.begin(), lost.end());
    EXPECT_EQ(lost, whom);
  }
}

/// For a participant that does not serve, or serves meanwhile.
void await_loss(auto& port, rank_t rank) {
  while (!rma::is_lost(port, rank)) port.pause(0);
}

TYPED_TEST(contract_of_losses, C39_who_is_killed_is_lost) {
  SKIP_WITHOUT_LOSSES;
  loses<TypeParam>({1}, nodes(2, 1), [](auto& me) {
    require(rma::may_lose(me.port()), "the run says so");
    if (me.rank() == 1) die();
    await_loss(me.port(), 1);
    require(!rma::is_lost(me.port(), 0), "a living rank is not lost");
    require(rma::is_lost(me.port(), 1), "once lost, always lost");
  });
}

TYPED_TEST(contract_of_losses, C39_only_where_the_run_says_so) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    require(!rma::may_lose(me.port()) && !rma::is_lost(me.port(), 1), "this run loses no rank");
  });
}

TYPED_TEST(contract_of_losses, C39_what_the_lost_rank_did_is_there) {
  SKIP_WITHOUT_LOSSES;
  loses<TypeParam>({1}, nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const auto cell = take<plain_cell>(me).at(0);
    if (me.rank() == 1) {
      rma::put_now(port, cell, 5);
      port.send(0, {1, 0, 0});
      port.send(0, {2, 0, 0});
      die();
    }
    await_loss(port, 1);
    require(port.load(cell) == 5, "what it posted and flushed");
    rma::message got;
    require(port.try_receive(got) && got.body[0] == 1, "its first message");
    require(port.try_receive(got) && got.body[0] == 2, "its second message");
    require(!port.try_receive(got), "and no more");
  });
}

/// Counts what rank 1 sends, and ends the wait of its own rank when rank 1 is lost.
template <class Port>
struct survivor final : rma::message_handler {
  survivor(Port& p, plain_cell c) : port(p), told(c) {}
  void handle(const rma::message& m) override {
    require(!rma::is_lost(port, m.from), "a lost rank sends nothing more");
    ++heard;
  }
  void lost(rank_t rank) override {
    require(rank == 1 && heard == 2, "a loss is told after the last message");
    require(rma::is_lost(port, rank), "and is known then");
    port.store(told, port.load(told) + 1);
    port.send(port.rank(), {9, 0, 0});
  }
  Port& port;
  plain_cell told;
  int heard = 0;
};

/// Rank 0 serves while it waits in `wait` for an effect of the loss of rank 1.
template <class Fabric, class Wait>
void is_told_in(const rma::topology& machine, Wait wait) {
  loses<Fabric>({1}, machine, [wait](auto& me) {
    auto& port = me.port();
    const auto told = take<plain_cell>(me).at(0);
    if (me.rank() == 1) {
      port.send(0, {1, 0, 0});
      port.send(0, {2, 0, 0});
      die();
    }
    survivor handler(port, told);
    port.serve_with(&handler);
    wait(port, told, handler);
    port.serve_with(nullptr);
    require(port.load(told) == 1, "a loss is told once");
  });
}

TYPED_TEST(contract_of_losses, C39_await_tells_of_a_loss) {
  SKIP_WITHOUT_LOSSES;
  is_told_in<TypeParam>(
      nodes(2, 1), [](auto& port, plain_cell told, auto&) { port.await(told, rma::equals(1)); });
}

TYPED_TEST(contract_of_losses, C39_poll_and_pause_tell_of_a_loss) {
  SKIP_WITHOUT_LOSSES;
  is_told_in<TypeParam>(nodes(2, 1), [](auto& port, plain_cell told, auto&) {
    port.poll(told, rma::equals(1), rma::backoff(100, 10'000));
  });
  is_told_in<TypeParam>(nodes(2, 1), [](auto& port, plain_cell told, auto&) {
    while (port.load(told) == 0) port.pause(0);
  });
}

// It receives messages itself, and its handler is called for losses all the same.
TYPED_TEST(contract_of_losses, C39_receive_tells_of_a_loss) {
  SKIP_WITHOUT_LOSSES;
  is_told_in<TypeParam>(nodes(2, 1), [](auto& port, plain_cell, auto& handler) {
    for (word what = 0; what != 9;) {
      const rma::message m = port.receive();
      what = m.body[0];
      handler.heard += m.from == 1 ? 1 : 0;
    }
  });
}

TYPED_TEST(contract_of_losses, C39_what_a_lost_rank_has_not_received_is_known) {
  SKIP_WITHOUT_LOSSES;
  loses<TypeParam>({1}, nodes(3, 1), [](auto& me) {
    auto& port = me.port();
    constexpr body first{1, 1, 1};
    constexpr body second{2, 2, 2};
    constexpr body of_another{3, 3, 3};
    if (me.rank() == 1) {
      require(port.receive().body == first, "from rank 0");
      die();
    }
    if (me.rank() == 0) {
      port.send(1, first);
      port.send(1, second);
    }
    await_loss(port, 1);
    if (me.rank() == 0) {
      require(!port.never_received(1, first), "it was received");
      require(port.never_received(1, second), "no rank received it");
      require(!port.never_received(1, {1, 2, 3}), "it was never sent");
      port.send(2, {});
      static_cast<void>(port.receive());
      require(!port.never_received(1, of_another), "another rank sent it");
    } else {
      static_cast<void>(port.receive());
      port.send(1, of_another);
      require(port.never_received(1, of_another), "we sent it");
      require(!port.never_received(1, second), "another rank sent that");
      port.send(0, {});
    }
  });
}

// As C34: every rank leaves a mark before the barrier. Three ranks die, each in another episode.
TYPED_TEST(contract_of_losses, C39_a_barrier_leaves_out_the_lost) {
  SKIP_WITHOUT_LOSSES;
  loses<TypeParam>({2, 5, 7}, nodes(4, 2), [](auto& me) {
    auto& port = me.port();
    const auto marks = take<plain_cell>(me);
    rma::barrier together(me);
    const auto dies_in = [](rank_t rank) -> word {
      return rank == 2 ? 1 : rank == 5 ? 4 : rank == 7 ? 9 : 100;
    };
    for (word episode = 1; episode <= 12; ++episode) {
      if (dies_in(me.rank()) == episode) die();
      port.store(marks.at(me.rank()), episode);
      together.arrive_and_wait();
      for (rank_t r = 0; r < me.machine().ranks(); ++r) {
        if (dies_in(r) <= episode) continue;
        const word seen = rma::get_now(port, marks.at(r));
        require(seen == episode || seen == episode + 1, "all living ranks have arrived");
      }
    }
  });
}

}  // namespace
}  // namespace lockflight::test
