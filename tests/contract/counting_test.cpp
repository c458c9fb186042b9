// The counting decorator: exact counts, by kind and by where an operation goes.
#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

using counted_port = fabric::counting<shm::port>;
using fabric::operation_counts;

template <class Call>
void counts_as(counted_port& port, const operation_counts& expected, Call call,
               const std::string& what) {
  port.reset_counts();
  call();
  require(port.counts() == expected, what);
}

TEST(counting, C32_each_posted_operation_is_one) {
  on_rank_0_of_two_nodes<counted_port>([](auto& port, auto& me) {
    const one_of_each cells = one_of_each::take_from(me);
    const auto first = take<cpu_cell>(me, 3 * rma::line_words);
    word result = 0;
    std::array<word, 3> results{};
    for (const rank_t to : {0, 1, 2, 3}) {
      const one_of_each there = cells.at(to);
      const std::uint64_t back = to < 2;  // the own node: loopback
      counts_as(
          port, {.put = 1, .loopback = back}, [&] { port.put(there.plain, 1); }, "put");
      counts_as(
          port, {.put = 1, .loopback = back}, [&] { port.put(there.cpu, 1); }, "put");
      counts_as(
          port, {.put = 1, .loopback = back}, [&] { port.put(there.nic, 1); }, "put");
      counts_as(
          port, {.get = 1, .loopback = back}, [&] { port.get(there.plain, result); }, "get");
      counts_as(
          port, {.get = 1, .loopback = back},
          [&] { rma::get_lines(port, first.at(to), std::span(results)); }, "get_lines");
      counts_as(
          port, {.add = 1, .loopback = back}, [&] { port.add(there.nic, 1); }, "add");
      counts_as(
          port, {.fetch_add = 1, .loopback = back}, [&] { port.fetch_add(there.nic, 1, result); },
          "fetch_add");
      counts_as(
          port, {.swap = 1, .loopback = back}, [&] { port.swap(there.nic, 1, result); }, "swap");
      counts_as(
          port, {.cas = 1, .loopback = back}, [&] { port.compare_swap(there.nic, 0, 1, result); },
          "compare_swap");
      counts_as(
          port, {.flush = 1}, [&] { port.flush(to); }, "flush(rank)");
    }
    counts_as(
        port, {.flush = 1}, [&] { port.flush(); }, "flush()");
  });
}

TEST(counting, C32_immediate_operations_cost_no_network) {
  on_rank_0_of_two_nodes<counted_port>([](auto& port, auto& me) {
    const one_of_each cells = one_of_each::take_from(me).at(1);
    const auto discard = [](word) {};
    counts_as(
        port, {.load = 1}, [&] { discard(port.load(cells.nic)); }, "load");
    counts_as(
        port, {.load = 2},
        [&] {
          const std::array from{cells.cpu, cells.cpu};
          std::array<word, 2> seen{};
          rma::load_each(port, std::span<const cpu_cell>(from), std::span(seen));
        },
        "load_each");
    counts_as(
        port, {.store = 1}, [&] { port.store(cells.plain, 1); }, "store");
    counts_as(
        port, {.rmw = 1}, [&] { discard(port.cpu_fetch_add(cells.cpu, 1)); }, "fetch_add");
    counts_as(
        port, {.rmw = 1}, [&] { discard(port.cpu_swap(cells.cpu, 1)); }, "cpu_swap");
    counts_as(
        port, {.rmw = 1}, [&] { discard(port.cpu_compare_swap(cells.cpu, 9, 1)); }, "failing CAS");
    counts_as(
        port, {.load = 1}, [&] { port.await(cells.plain, rma::equals(1)); }, "await");
    counts_as(
        port, {}, [&] { port.fence(), port.pause(0); }, "fence and pause");
    require(port.counts().network() == 0, "none of these is a network operation");
  });
}

TEST(counting, C32_a_long_await_counts_once) {
  shm::run_ports({.machine = one_node(2), .threads = true}, [](shm::port& bare) {
    counted_port port(bare);
    rma::participant<counted_port> me(port, 4096);
    const auto cell = take<plain_cell>(me);
    if (me.rank() == 1) {
      port.pause(3'000'000);
      port.store(cell, 1);
    } else {
      port.await(cell, rma::equals(1));
      require(port.counts() == operation_counts{.load = 1}, "however long");
    }
  });
}

TEST(counting, C19_each_look_of_a_poll_counts) {
  on_rank_0_of_two_nodes<counted_port>([](auto& port, auto& me) {
    const auto far = take<nic_cell>(me).at(2);
    int looks = 0;
    const auto third = [&looks](word) { return ++looks == 3; };
    port.poll(far, third, rma::backoff::none());
    require(port.counts() == operation_counts{.get = 3, .flush = 3}, "3 gets, 3 flushes");
  });
}

TEST(counting, the_helpers_cost_one_round_trip) {
  on_rank_0_of_two_nodes<counted_port>([](auto& port, auto& me) {
    const auto far = take<nic_cell>(me).at(3);
    const auto discard = [](word) {};
    using c = operation_counts;
    counts_as(
        port, c{.put = 1, .flush = 1}, [&] { rma::put_now(port, far, 1); }, "put_now");
    counts_as(
        port, c{.get = 1, .flush = 1}, [&] { discard(rma::get_now(port, far)); }, "get_now");
    counts_as(
        port, c{.fetch_add = 1, .flush = 1}, [&] { discard(rma::fetch_add_now(port, far, 1)); },
        "fetch_add_now");
    counts_as(
        port, c{.swap = 1, .flush = 1}, [&] { discard(rma::swap_now(port, far, 1)); }, "swap_now");
    counts_as(
        port, c{.cas = 1, .flush = 1}, [&] { discard(rma::compare_swap_now(port, far, 1, 2)); },
        "compare_swap_now");
    counts_as(
        port, c{}, [] {}, "and nothing costs nothing");
  });
}

TEST(counting, messages_count_when_sent) {
  on_rank_0_of_two_nodes<counted_port>([](auto& port, auto&) {
    port.send(0, {1, 2, 3});
    port.send(0, {4, 5, 6});
    static_cast<void>(port.receive());
    rma::message got;
    static_cast<void>(port.try_receive(got));
    require(port.counts() == operation_counts{.messages = 2}, "2 messages");
  });
}

TEST(counting, sums_and_resets) {
  operation_counts a{.put = 1, .get = 2, .add = 3, .fetch_add = 4, .swap = 5, .cas = 6};
  EXPECT_EQ(a.network(), 21u);
  const operation_counts b{.put = 10,
                           .get = 10,
                           .add = 10,
                           .fetch_add = 10,
                           .swap = 10,
                           .cas = 10,
                           .flush = 7,
                           .loopback = 8,
                           .load = 9,
                           .store = 10,
                           .rmw = 11,
                           .messages = 12};
  a += b;
  const operation_counts sum{.put = 11,
                             .get = 12,
                             .add = 13,
                             .fetch_add = 14,
                             .swap = 15,
                             .cas = 16,
                             .flush = 7,
                             .loopback = 8,
                             .load = 9,
                             .store = 10,
                             .rmw = 11,
                             .messages = 12};
  EXPECT_EQ(a, sum);
  EXPECT_EQ(a.network(), 81u) << "flushes, loads and messages are no posted operations";
}

// The promise of design section 8, at the level of the barrier: a put and a local wait each round.
TEST(counting, C34_a_barrier_costs_a_put_each_round) {
  shm::run_ports({.machine = nodes(5, 1), .threads = true}, [](shm::port& bare) {
    counted_port port(bare);
    rma::participant<counted_port> me(port, 4096);
    rma::barrier together(me);
    together.arrive_and_wait();
    require(port.counts() == operation_counts{.put = 3, .flush = 4, .load = 3},
            "ceil(log2 5) rounds, and the flush before them");
  });
}

}  // namespace
}  // namespace lockflight::test
