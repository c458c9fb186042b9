// The strict decorator: each clause that a lock can break is refused when it is broken, and nothing
// else is.
#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

using strict_port = fabric::strict<shm::port>;

/// The error of strict for the call; empty if there is none.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const fabric::contract_violation& e) {
    return e.what();
  }
  return "";
}

template <class Call>
void refuses(Call call, const std::string& why) {
  const std::string said = refusal(call);
  require(said == why, "expected '" + why + "', strict said '" + said + "'");
}

template <class Call>
void allows(Call call) {
  const std::string said = refusal(call);
  require(said.empty(), "strict refused what is allowed: " + said);
}

constexpr auto anything = rma::any_predicate{};

TEST(strict, C10_refuses_immediate_operations_on_another_node) {
  on_rank_0_of_two_nodes<strict_port>([](auto& port, auto& me) {
    const one_of_each far = one_of_each::take_from(me).at(2);
    const auto why = [](const std::string& operation) {
      return operation + " by rank 0 on a cell of rank 2, which is on another node";
    };
    refuses([&] { static_cast<void>(port.load(far.plain)); }, why("load"));
    refuses([&] { static_cast<void>(port.load(far.nic)); }, why("load"));
    refuses([&] { static_cast<void>(port.load(far.cpu)); }, why("load"));
    refuses([&] { port.store(far.plain, 1); }, why("store"));
    refuses([&] { port.store(far.cpu, 1); }, why("store"));
    refuses([&] { static_cast<void>(port.cpu_fetch_add(far.cpu, 1)); }, why("cpu_fetch_add"));
    refuses([&] { static_cast<void>(port.cpu_swap(far.cpu, 1)); }, why("cpu_swap"));
    refuses([&] { static_cast<void>(port.cpu_compare_swap(far.cpu, 0, 1)); },
            why("cpu_compare_swap"));
    require(rma::get_now(port, far.plain) == 0 && rma::get_now(port, far.cpu) == 0,
            "what is refused does not happen");
  });
}

TEST(strict, C10_allows_them_on_the_own_node) {
  on_rank_0_of_two_nodes<strict_port>([](auto& port, auto& me) {
    for (const rank_t near : {0, 1}) {
      const one_of_each cells = one_of_each::take_from(me).at(near);
      for (const writing how : all_writings)
        allows([&] {
          on_cell_of(how, cells, [&](auto cell) { increment(port, how, cells, port.load(cell)); });
        });
    }
  });
}

TEST(strict, C21_refuses_what_lies_in_no_segment) {
  on_rank_0_of_two_nodes<strict_port>([](auto& port, auto& me) {
    const one_of_each cells = one_of_each::take_from(me);
    const std::uint32_t words = port.inner().words_per_rank();
    const auto why = [words](std::uint32_t index) {
      return "an operation on cell " + std::to_string(index) + " of a segment of " +
             std::to_string(words);
    };
    require(words >= me.cells().limit(), "a segment is as large as it was asked for, or larger");
    for (const std::uint32_t index : {0u, words, UINT32_MAX}) {
      const plain_cell none{0, index};
      word got = 0;
      refuses([&] { port.put(none, 1); }, why(index));
      refuses([&] { port.get(none.at(2), got); }, why(index));
      refuses([&] { static_cast<void>(port.load(none)); }, why(index));
      refuses([&] { port.await(none, anything); }, why(index));
    }
    allows([&] { static_cast<void>(port.load(plain_cell{0, words - 1})); });
    allows([&] { static_cast<void>(port.load(cells.plain)); });
  });
}

TEST(strict, C16_refuses_to_await_another_nodes_cell) {
  on_rank_0_of_two_nodes<strict_port>([](auto& port, auto& me) {
    const one_of_each cells = one_of_each::take_from(me);
    for (const rank_t far : {2, 3})
      refuses([&] { port.await(cells.plain.at(far), anything); },
              "await by rank 0 on a cell of rank " + std::to_string(far) +
                  ", which is on another node");
    allows([&] { port.await(cells.plain.at(1), anything); });
    allows([&] { port.poll(cells.nic.at(2), anything, rma::backoff::none()); });
  });
}

/// Every way to post something to `rank`.
template <class Port, class Use>
void each_posted(Port& port, const one_of_each& cells, Use use) {
  static word result = 0;
  use([&] { port.put(cells.plain, 1); });
  use([&] { port.put(cells.cpu, 1); });
  use([&] { port.put(cells.nic, 1); });
  use([&] { port.get(cells.plain, result); });
  use([&] { port.get(cells.cpu, result); });
  use([&] { port.get(cells.nic, result); });
  use([&] { port.add(cells.nic, 1); });
  use([&] { port.fetch_add(cells.nic, 1, result); });
  use([&] { port.swap(cells.nic, 1, result); });
  use([&] { port.compare_swap(cells.nic, 0, 1, result); });
}

TEST(strict, C09_refuses_to_wait_with_something_pending) {
  on_rank_0_of_two_nodes<strict_port>([](auto& port, auto& me) {
    const one_of_each cells = one_of_each::take_from(me);
    const std::string pending = " by rank 0 while an operation is not flushed";
    each_posted(port, cells.at(2), [&](auto post) {
      post();
      refuses([&] { port.await(cells.plain, anything); }, "await" + pending);
      refuses([&] { port.poll(cells.plain.at(1), anything, rma::backoff::none()); },
              "poll" + pending);
      refuses([&] { static_cast<void>(port.receive()); }, "receive" + pending);
      port.flush();
      allows([&] { port.await(cells.plain, anything); });
    });
  });
}

TEST(strict, C09_knows_which_targets_are_pending) {
  on_rank_0_of_two_nodes<strict_port>([](auto& port, auto& me) {
    const one_of_each cells = one_of_each::take_from(me);
    const auto waits = [&] { port.await(cells.plain, anything); };
    const std::string why = "await by rank 0 while an operation is not flushed";
    port.put(cells.nic.at(2), 1);
    port.put(cells.nic.at(2), 2);
    port.flush(1);
    refuses(waits, why);
    port.flush(2);
    allows(waits);
    port.put(cells.nic.at(1), 1);
    port.put(cells.nic.at(2), 1);
    port.put(cells.nic.at(1), 1);
    port.flush(2);
    refuses(waits, why);
    port.flush(1);
    allows(waits);
    port.add(cells.nic.at(3), 1);
    port.put(cells.nic.at(0), 1);
    port.flush();
    allows(waits);
  });
}

TEST(strict, C09_allows_what_is_no_wait) {
  on_rank_0_of_two_nodes<strict_port>([](auto& port, auto& me) {
    const one_of_each cells = one_of_each::take_from(me);
    port.put(cells.plain.at(2), 1);
    allows([&] { static_cast<void>(port.load(cells.plain)); });
    allows([&] { port.store(cells.cpu, 1); });
    allows([&] { static_cast<void>(port.cpu_swap(cells.cpu, 2)); });
    allows([&] { port.fence(); });
    allows([&] { port.pause(0); });
    allows([&] { port.send(1, {}); });
    rma::message got;
    allows([&] { static_cast<void>(port.try_receive(got)); });
    port.flush();
  });
}

TEST(strict, refuses_cells_of_no_rank) {
  on_rank_0_of_two_nodes<strict_port>([](auto& port, auto& me) {
    const one_of_each cells = one_of_each::take_from(me);
    for (const rank_t nobody : {-1, 4, 1000}) {
      const std::string why = "an operation on rank " + std::to_string(nobody) + " of 4";
      const one_of_each nowhere = cells.at(nobody);
      each_posted(port, nowhere, [&](auto post) { refuses(post, why); });
      refuses([&] { port.flush(nobody); }, why);
      refuses([&] { static_cast<void>(port.load(nowhere.nic)); }, why);
      refuses([&] { port.store(nowhere.plain, 1); }, why);
      refuses([&] { static_cast<void>(port.cpu_fetch_add(nowhere.cpu, 1)); }, why);
      refuses([&] { static_cast<void>(port.cpu_swap(nowhere.cpu, 1)); }, why);
      refuses([&] { static_cast<void>(port.cpu_compare_swap(nowhere.cpu, 0, 1)); }, why);
      refuses([&] { port.await(nowhere.plain, anything); }, why);
      refuses([&] { port.poll(nowhere.plain, anything, rma::backoff::none()); }, why);
      refuses([&] { port.send(nobody, {}); }, why);
    }
    allows([&] { port.await(cells.plain, anything); });  // a refused operation is not pending
  });
}

// A default cell is no cell: a lock that forgets to set one gets an error.
TEST(strict, refuses_a_cell_that_was_never_set) {
  on_rank_0_of_two_nodes<strict_port>([](auto& port, auto&) {
    refuses([&] { port.put(plain_cell{}, 1); }, "an operation on rank -1 of 4");
  });
}

TEST(strict, looks_through_every_decorator_around_it) {
  shm::run_ports({.machine = nodes(2, 1), .threads = true}, [](shm::port& bare) {
    strict_port strict(bare);
    fabric::counting<strict_port> port(strict);
    rma::participant<fabric::counting<strict_port>> me(port, 4096);
    const auto far = take<plain_cell>(me).at(1 - me.rank());
    require(!refusal([&] { static_cast<void>(port.load(far)); }).empty(), "load");
    port.put(far, 1);
    require(!refusal([&] { port.await(far.at(me.rank()), anything); }).empty(), "await");
    port.flush();
  });
}

}  // namespace
}  // namespace lockflight::test
