// C27 to C30 and C37: messages and the other capabilities. A fabric that does not declare one
// skips.
#include <atomic>

#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

/// A fabric need not have these.
template <class Fabric>
class contract_of_messages : public contract<Fabric> {};
TYPED_TEST_SUITE(contract_of_messages, capability_fabrics, fabric_names);
const bool modes_of_messages = run_in(contract_modes);

using body = std::array<word, 3>;

template <class Fabric>
constexpr bool has_messages = rma::messaging_port<typename Fabric::port_type>;

#define SKIP_WITHOUT_MESSAGES(clause) \
  GTEST_SKIP() << clause << ": the fabric " << TypeParam::name << " declares no messages"

TYPED_TEST(contract_of_messages, C27_a_message_arrives_whole) {
  if constexpr (!has_messages<TypeParam>) {
    SKIP_WITHOUT_MESSAGES("C27");
  } else {
    run_on<TypeParam>(nodes(2, 2), [](auto& me) {
      auto& port = me.port();
      const int ranks = me.machine().ranks();
      rma::message got;
      require(!port.try_receive(got), "nothing is there before somebody sends");
      rma::barrier together(me);
      together.arrive_and_wait();
      const auto from = static_cast<word>(me.rank());
      for (rank_t to = 0; to < ranks; ++to)  // the own rank included
        port.send(to, {from, ~from, static_cast<word>(to)});
      int heard = 0;
      for (int i = 0; i < ranks; ++i) {
        const rma::message m = port.receive();
        const auto sender = static_cast<word>(m.from);
        require(m.body == body{sender, ~sender, from}, "the message and its sender");
        heard |= 1 << m.from;
      }
      require(heard == (1 << ranks) - 1, "one message from each");
      require(!port.try_receive(got), "and no more");
    });
  }
}

TYPED_TEST(contract_of_messages, C27_try_receive_takes_what_is_there) {
  if constexpr (!has_messages<TypeParam>) {
    SKIP_WITHOUT_MESSAGES("C27");
  } else {
    run_on<TypeParam>(nodes(2, 1), [](auto& me) {
      auto& port = me.port();
      for (word i = 0; i < static_cast<word>(rounds<TypeParam>(200)); ++i) {
        if (i % 2 == static_cast<word>(me.rank())) {
          port.send(1 - me.rank(), {i, 0, 0});
        } else {
          rma::message got;
          while (!port.try_receive(got)) port.pause(0);
          require(got.from == 1 - me.rank() && got.body[0] == i, "try_receive gets the message");
        }
      }
    });
  }
}

// Every rank sends all that it may before any rank receives: a send that waits for its receiver
// would stop all of them.
TYPED_TEST(contract_of_messages, C28_a_send_completes_without_its_receiver) {
  if constexpr (!has_messages<TypeParam>) {
    SKIP_WITHOUT_MESSAGES("C28");
  } else {
    run_on<TypeParam>(nodes(2, 4), [](auto& me) {
      auto& port = me.port();
      const int ranks = me.machine().ranks();
      rma::barrier together(me);
      for (rank_t to = 0; to < ranks; ++to)
        for (word i = 0; i < 2; ++i) port.send(to, {i, 0, 0});
      together.arrive_and_wait();
      std::array<word, 8> next{};
      for (int i = 0; i < 2 * ranks; ++i) {
        const rma::message m = port.receive();
        require(m.body[0] == next[static_cast<std::size_t>(m.from)]++, "first in, first out");
      }
    });
  }
}

// A server and its clients: 8 senders, each with at most two unanswered messages.
TYPED_TEST(contract_of_messages, C29_a_flood_is_received_in_order) {
  if constexpr (!has_messages<TypeParam>) {
    SKIP_WITHOUT_MESSAGES("C29");
  } else {
    run_on<TypeParam>(nodes(3, 3), [](auto& me) {
      auto& port = me.port();
      const word n = static_cast<word>(rounds<TypeParam>(200));
      constexpr rank_t server = 4;
      constexpr int clients = 8;
      if (me.rank() == server) {
        std::array<word, clients + 1> next{};
        for (word i = 0; i < clients * n; ++i) {
          const rma::message m = port.receive();
          word& expected = next[static_cast<std::size_t>(m.from)];
          require(m.body == body{expected, 7, expected * 3}, "nothing lost, doubled or overtaken");
          ++expected;
          port.send(m.from, {m.body[0], 8, 0});
        }
      } else {
        const auto answered = [&](word i) {
          const rma::message m = port.receive();
          require(m.from == server && m.body == body{i, 8, 0}, "answers come in order");
        };
        for (word i = 0; i < n; ++i) {
          port.send(server, {i, 7, i * 3});
          if (i > 0) answered(i - 1);
        }
        answered(n - 1);
      }
    });
  }
}

TYPED_TEST(contract_of_messages, C29_what_preceded_a_message_is_visible) {
  if constexpr (!has_messages<TypeParam>) {
    SKIP_WITHOUT_MESSAGES("C29");
  } else {
    run_on<TypeParam>(nodes(2, 1), [](auto& me) {
      auto& port = me.port();
      const int n = rounds<TypeParam>(200);
      const auto stored = take<plain_cell>(me, n).at(0);
      const auto put = take<plain_cell>(me, n).at(1);
      for (int i = 0; i < n; ++i) {
        const auto value = static_cast<word>(i) + 1;
        if (me.rank() == 0) {
          rma::put_now(port, nth(put, i), value);
          port.store(nth(stored, i), value);
          port.send(1, {value, 0, 0});
          static_cast<void>(port.receive());
        } else {
          require(port.receive().body[0] == value, "in order");
          require(port.load(nth(put, i)) == value, "a flushed put precedes the message");
          require(rma::get_now(port, nth(stored, i)) == value, "and so does a store");
          port.send(0, {});
        }
      }
    });
  }
}

/// For values that grow: while a wait serves, the next may come.
constexpr auto at_least(word value) {
  return [value](word now) { return now >= value; };
}

/// Answers each message, and counts.
template <class Port>
struct echo final : rma::message_handler {
  explicit echo(Port& p) : port(p) {}
  void handle(const rma::message& m) override {
    ++served;
    port.send(m.from, {m.body[0] + 1, 0, 0});
  }
  Port& port;
  word served = 0;
};

// Rank 0 waits for a cell that rank 1 writes only after it has a reply.
template <class Fabric, class Wait>
void serves_in(const rma::topology& machine, Wait wait) {
  run_on<Fabric>(machine, [&](auto& me) {
    auto& port = me.port();
    const auto cell = take<plain_cell>(me);
    rma::barrier together(me);
    if (me.rank() == 0) {
      echo handler(port);
      port.serve_with(&handler);
      for (word i = 1; i <= 20; ++i) wait(port, cell, i);
      port.serve_with(nullptr);
      require(handler.served == 20, "each message is served once");
    } else {
      for (word i = 1; i <= 20; ++i) {
        port.send(0, {i, 0, 0});
        require(port.receive().body == body{i + 1, 0, 0}, "it was served while its receiver waits");
        for (const rank_t rank : {0, 1}) rma::put_now(port, cell.at(rank), i);
      }
    }
    together.arrive_and_wait();
    // Without a handler a message waits for its receiver again.
    if (me.rank() == 1) port.send(0, {7, 0, 0});
    together.arrive_and_wait();
    if (me.rank() == 0) require(port.receive().body[0] == 7, "nobody else took it");
  });
}

TYPED_TEST(contract_of_messages, C37_await_serves) {
  if constexpr (!has_messages<TypeParam>) {
    SKIP_WITHOUT_MESSAGES("C37");
  } else {
    const auto on_cell_of = [](rank_t home) {
      return [home](auto& port, plain_cell cell, word value) {
        port.await(cell.at(home), at_least(value));
      };
    };
    serves_in<TypeParam>(nodes(2, 1), on_cell_of(0));
    serves_in<TypeParam>(one_node(2), on_cell_of(0));
    serves_in<TypeParam>(one_node(2), on_cell_of(1));
  }
}

TYPED_TEST(contract_of_messages, C37_poll_and_pause_serve) {
  if constexpr (!has_messages<TypeParam>) {
    SKIP_WITHOUT_MESSAGES("C37");
  } else {
    serves_in<TypeParam>(nodes(2, 1), [](auto& port, plain_cell cell, word value) {
      port.poll(cell.at(1), at_least(value), rma::backoff(100, 10'000));
    });
    serves_in<TypeParam>(nodes(2, 1), [](auto& port, plain_cell cell, word value) {
      while (port.load(cell.at(0)) < value) port.pause(0);
    });
  }
}

TYPED_TEST(contract_of_messages, C30_what_is_declared_is_there) {
  using port = typename TypeParam::port_type;
  static_assert(rma::port<port>);
  EXPECT_FALSE(port::capabilities.fabric.empty());
  EXPECT_EQ(port::capabilities.messages, rma::messaging_port<port>);
  EXPECT_EQ(port::capabilities.native_memory, rma::native_port<port>);
  EXPECT_EQ(port::capabilities.losses, rma::losing_port<port>);
  EXPECT_EQ(port::capabilities.node_fence, rma::node_fencing_port<port>);
}

// A cell has the class with which it was taken. Only where both kinds are atomic with each other
// may a lock use a word as both.
TYPED_TEST(contract_of_messages, C30_uniform_rmws_are_atomic_with_each_other) {
  if constexpr (!TypeParam::port_type::capabilities.uniform_rmw) {
    GTEST_SKIP() << "C30: the fabric " << TypeParam::name << " declares no uniform_rmw";
  } else {
    run_on<TypeParam>(one_node(4), [](auto& me) {
      auto& port = me.port();
      const auto as_nic = take<nic_cell>(me).at(2);
      const auto as_cpu = rma::from_word<cpu_cell>(rma::to_word(as_nic));
      const int n = rounds<TypeParam>(1000);
      rma::barrier together(me);
      together.arrive_and_wait();
      for (int i = 0; i < n; ++i) {
        if (me.rank() % 2 == 0)
          static_cast<void>(port.cpu_fetch_add(as_cpu, 1));
        else
          static_cast<void>(rma::fetch_add_now(port, as_nic, 1));
      }
      together.arrive_and_wait();
      require(port.load(as_nic) == static_cast<word>(4 * n),
              "the two kinds do not lose each other");
    });
  }
}

// The fabric's declaration, or, where its machines differ in that, the port's.
template <class Fabric>
bool orders_posts() {
  if constexpr (Fabric::port_type::capabilities.ordered_posts) return true;
  std::atomic<bool> says = false;
  if constexpr (Fabric::shares_memory)
    run_on<Fabric>(one_node(1), [&](auto& me) { says = rma::orders_posts(me.port()); });
  return says;
}

// Each rank swaps its own word in and reads the other's, with one flush: the second sees the first.
// (A read before the swap would let both miss each other.)
TYPED_TEST(contract_of_messages, C30_ordered_posts_take_effect_in_order) {
  if (!orders_posts<TypeParam>()) {
    GTEST_SKIP() << "C30: the fabric " << TypeParam::name << " declares no ordered_posts";
  } else {
    run_on<TypeParam>(one_node(2), [](auto& me) {
      auto& port = me.port();
      const auto flags = take<nic_cell>(me, 16);  // at rank 0, on cache lines of their own
      const auto missed = take<nic_cell>(me);
      const auto own = flags + static_cast<std::uint32_t>(8 * me.rank());
      const auto others = flags + static_cast<std::uint32_t>(8 - 8 * me.rank());
      const int n = rounds<TypeParam>(1000);
      rma::barrier together(me);
      for (int i = 1; i <= n; ++i) {
        const auto round = static_cast<word>(i);
        together.arrive_and_wait();
        word before = 0;
        word seen = 0;
        port.swap(own, round, before);
        port.get(others, seen);
        port.flush(0);
        require(before == round - 1, "nobody else writes it");
        if (seen != round) static_cast<void>(rma::fetch_add_now(port, missed, 1));
        together.arrive_and_wait();
        require(port.load(missed) <= round, "not both of a round missed the other one");
      }
    });
  }
}

TYPED_TEST(contract_of_messages, C30_native_memory_is_the_cells) {
  if constexpr (!rma::native_port<typename TypeParam::port_type>) {
    GTEST_SKIP() << "C30: the fabric " << TypeParam::name << " declares no native_memory";
  } else {
    run_on<TypeParam>(one_node(2), [](auto& me) {
      auto& port = me.port();
      const auto cells = take<plain_cell>(me, 2);
      rma::barrier together(me);
      const rank_t other = 1 - me.rank();
      auto* const there = static_cast<word*>(port.native_address(cells.at(other)));
      require(static_cast<word*>(port.native_address(cells.at(other) + 1)) == there + 1,
              "neighbouring cells are neighbouring words");
      *there = 5;
      together.arrive_and_wait();
      require(port.load(cells.at(me.rank())) == 5, "what is written there is in the cell");
    });
  }
}

}  // namespace
}  // namespace lockflight::test
