// C16 to C19, C38 and C44: waiting, by each policy that shared memory has.
#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

TYPED_TEST_SUITE(contract, contract_fabrics, fabric_names);
const bool modes_of_waiting = run_in(contract_modes) && run_in(waiting_modes);

TYPED_TEST(contract, C16_await_returns_the_value_that_it_awaited) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const auto cell = take<plain_cell>(me).at(0);
    const auto last = static_cast<word>(rounds<TypeParam>(200));
    if (me.rank() == 1) {
      for (word i = 1; i <= last; ++i) rma::put_now(port, cell, i);
      return;
    }
    for (word now = 0; now < last;) {
      const word before = now;
      now = port.await(cell, [before](word value) { return value > before; });
      require(now > before && now <= last, "await returns a value that satisfies its predicate");
    }
    require(port.await(cell, rma::equals(last)) == last, "what holds already is not awaited");
  });
}

TYPED_TEST(contract, C16_what_preceded_the_awaited_write_is_visible) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const int n = rounds<TypeParam>(300);
    const auto data = take<plain_cell>(me, n);
    const auto flag = take<nic_cell>(me);
    const rank_t other = 1 - me.rank();
    for (int i = 0; i < n; ++i) {
      const auto value = static_cast<word>(i) + 1;
      if (i % 2 == me.rank()) {
        rma::put_now(port, nth(data.at(other), i), value);
        rma::put_now(port, flag.at(other), value);
      } else {
        port.await(flag.at(me.rank()), rma::equals(value));
        require(port.load(nth(data.at(me.rank()), i)) == value, "data put before the flag is here");
      }
    }
  });
}

/// Rank 0 awaits every kind of write of rank 1, at once and so late that it may have gone to sleep.
template <class Fabric>
void wakes_from(const rma::topology& machine, int kinds) {
  run_on<Fabric>(machine, [kinds](auto& me) {
    auto& port = me.port();
    constexpr std::uint64_t late_ns = 4'000'000;
    const one_of_each cells = one_of_each::take_from(me);
    const auto heard = take<plain_cell>(me).at(1);
    std::array<word, 3> held{};  // by class
    word episode = 0;
    for (int kind = 0; kind < kinds; ++kind) {
      for (const std::uint64_t delay_ns : {std::uint64_t{0}, late_ns}) {
        const writing how = all_writings[static_cast<std::size_t>(kind)];
        ++episode;
        on_cell_of(how, cells, [&](auto cell) {
          word& before = held[static_cast<std::size_t>(decltype(cell)::class_of)];
          if (me.rank() == 1) {
            if (delay_ns > 0) port.pause(delay_ns);
            increment(port, how, cells, before);
            port.await(heard, rma::equals(episode));
          } else {
            port.await(cell, rma::equals(before + 1));
            rma::put_now(port, heard, episode);
          }
          ++before;
        });
      }
    }
  });
}

TYPED_TEST(contract, C17_await_wakes_from_a_write_of_another_node) {
  wakes_from<TypeParam>(nodes(2, 1), posted_writings);
}

TYPED_TEST(contract, C17_await_wakes_from_a_write_of_the_own_node) {
  wakes_from<TypeParam>(one_node(2), static_cast<int>(all_writings.size()));
}

// Back and forth without a pause, so that the write often falls between a read and falling asleep.
TYPED_TEST(contract, C17_no_wake_up_is_lost) {
  run_on<TypeParam>(one_node(2), [](auto& me) {
    auto& port = me.port();
    const int n = rounds<TypeParam>(600);
    const one_of_each cells = one_of_each::take_from(me);
    std::array<word, 3> held{};
    for (int i = 0; i < n; ++i) {
      const writing how = all_writings[static_cast<std::size_t>(i / 2) % all_writings.size()];
      on_cell_of(how, cells, [&](auto cell) {
        word& before = held[static_cast<std::size_t>(decltype(cell)::class_of)];
        if (i % 2 == me.rank())
          increment(port, how, cells, before);
        else
          port.await(cell, rma::equals(before + 1));
        ++before;
      });
    }
  });
}

TYPED_TEST(contract, C17_many_wait_at_one_home) {
  run_on<TypeParam>(one_node(6), [](auto& me) {
    auto& port = me.port();
    const int others = me.machine().ranks() - 1;
    const auto turn = take<plain_cell>(me, others + 1);
    const auto all = take<plain_cell>(me);
    const auto heard = take<nic_cell>(me);
    const auto total = [others](int i) { return static_cast<word>(2 * others * (i + 1)); };
    for (int i = 0; i < rounds<TypeParam>(50); ++i) {
      const auto episode = static_cast<word>(i) + 1;
      if (me.rank() == 0) {
        for (int r = 1; r <= others; ++r) port.store(nth(turn, r), episode);
        port.await(heard, [&](word now) { return now >= total(i) - static_cast<word>(others); });
        port.store(all, episode);
        port.await(heard, rma::equals(total(i)));
      } else {
        port.await(nth(turn, me.rank()), rma::equals(episode));
        port.add(heard, 1);
        port.flush(0);
        port.await(all, rma::equals(episode));
        port.add(heard, 1);
        port.flush(0);
      }
    }
  });
}

// A read may come late, when the cell holds another value; a predicate that stays true is noticed.
TYPED_TEST(contract, C17_a_value_that_stays_is_noticed) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const auto cell = take<nic_cell>(me).at(0);
    constexpr word goal = 100;
    if (me.rank() == 1) {
      for (word i = 0; i < 2 * goal; ++i) {
        port.add(cell, 1);
        port.flush(0);
      }
    } else {
      const word found = port.await(cell, [](word now) { return now >= goal; });
      require(found >= goal && found <= 2 * goal, "await notices what stays true");
    }
  });
}

TYPED_TEST(contract, C18_a_predicate_sees_one_word_at_a_time) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const auto cell = take<plain_cell>(me).at(0);
    constexpr word lower = 0xffffffff;
    const auto last = static_cast<word>(rounds<TypeParam>(500));
    if (me.rank() == 1) {
      for (word i = 1; i <= last; ++i) rma::put_now(port, cell, i << 32 | (lower - i));
    } else {
      const auto torn = [](word now) { return now != 0 && now >> 32 != lower - (now & lower); };
      const word found = port.await(cell, [=](word now) { return now >> 32 == last || torn(now); });
      require(!torn(found), "a predicate never sees parts of two writes");
    }
  });
}

TYPED_TEST(contract, C19_poll_sees_remote_writes) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const auto plain = take<plain_cell>(me);
    const auto nic = take<nic_cell>(me);
    const rank_t other = 1 - me.rank();
    for (word i = 1; i <= static_cast<word>(rounds<TypeParam>(50)); ++i) {
      // Each writes at home; the other polls from afar.
      if (i % 2 == static_cast<word>(me.rank())) {
        port.store(plain.at(me.rank()), i);
        port.add(nic.at(me.rank()), i);
        port.flush(me.rank());
        port.poll(plain.at(other), rma::equals(i + 1), {100, 10'000});
      } else {
        const word found = port.poll(plain.at(other), rma::equals(i), rma::backoff::none());
        require(found == i, "poll returns what it found");
        port.poll(nic.at(other), rma::differs_from(0), {100, 10'000});
        port.store(plain.at(me.rank()), i + 1);
      }
    }
  });
}

// With more ranks than cores a rank that polls must let the awaited rank run: they alternate, and
// each step needs a rank that may not be running.
TYPED_TEST(contract, C19_a_pause_lets_others_run) {
  run_on<TypeParam>(nodes(2, crowd() / 2), [](auto& me) {
    auto& port = me.port();
    const auto turn = take<nic_cell>(me).at(0);
    const int ranks = me.machine().ranks();
    for (int lap = 0; lap < rounds<TypeParam>(10); ++lap) {
      const auto mine = static_cast<word>(lap * ranks + me.rank());
      while (rma::get_now(port, turn) != mine) port.pause(0);
      rma::put_now(port, turn, mine + 1);
    }
  });
}

TYPED_TEST(contract, C19_await_lets_others_run) {
  run_on<TypeParam>(nodes(2, crowd() / 2), [](auto& me) {
    auto& port = me.port();
    const auto turn = take<plain_cell>(me);
    const int ranks = me.machine().ranks();
    for (int lap = 0; lap < rounds<TypeParam>(20); ++lap) {
      if (lap > 0 || me.rank() > 0)
        port.await(turn.at(me.rank()), rma::equals(static_cast<word>(lap) + 1));
      const bool wraps = me.rank() + 1 == ranks;
      rma::put_now(port, turn.at((me.rank() + 1) % ranks), static_cast<word>(lap + wraps) + 1);
    }
  });
}

TYPED_TEST(contract, C38_time_passes) {
  run_on<TypeParam>(nodes(1, 2), [](auto& me) {
    auto& port = me.port();
    const rma::deadline soon = port.deadline_in(1'000'000);
    const rma::deadline never = port.deadline_in(~std::uint64_t{0});
    require(port.is_over(port.deadline_in(0)), "no time is over at once");
    while (!port.is_over(soon)) port.pause(10'000);
    require(port.is_over(soon), "what is over stays over");
    require(!port.is_over(never), "the longest time there is does not wrap around");
  });
}

TYPED_TEST(contract, C38_await_until_ends_in_time) {
  run_on<TypeParam>(nodes(1, 2), [](auto& me) {
    auto& port = me.port();
    const auto plain = take<plain_cell>(me).at(0);
    const auto cpu = take<cpu_cell>(me).at(0);
    const auto nic = take<nic_cell>(me).at(0);
    const auto in_vain = [&](auto cell) {
      const rma::deadline until = port.deadline_in(300'000);
      require(port.await_until(cell, rma::equals(7), until) == 0, "nobody has written");
      require(port.is_over(until), "it came back before its time");
    };
    in_vain(plain), in_vain(cpu), in_vain(nic);
  });
}

TYPED_TEST(contract, C38_await_until_returns_what_comes_in_time) {
  run_on<TypeParam>(nodes(2, 1), [](auto& me) {
    auto& port = me.port();
    const auto cell = take<plain_cell>(me);
    const auto last = static_cast<word>(rounds<TypeParam>(100));
    const rma::deadline never = port.deadline_in(~std::uint64_t{0});
    const rank_t other = 1 - me.rank();
    for (word i = 1; i <= last; ++i) {
      if (me.rank() == 0) rma::put_now(port, cell.at(other), i);
      require(port.await_until(cell.at(me.rank()), rma::equals(i), never) == i, "it came");
      if (me.rank() == 1) rma::put_now(port, cell.at(other), i);
    }
    // What holds already is found, however late it is.
    const word now = port.await_until(cell.at(me.rank()), rma::equals(last), port.deadline_in(0));
    require(now == last, "it was there");
  });
}

TYPED_TEST(contract, C44_who_only_uses_its_cpu_answers) {
  using port_type = typename TypeParam::port_type;
  if constexpr (!port_type::capabilities.target_takes_part) {
    GTEST_SKIP() << "C44: on the fabric " << TypeParam::name << " no operation needs its target";
  } else {
    run_on<TypeParam>(nodes(2, 1), [](auto& me) {
      auto& port = me.port();
      const auto asked = take<nic_cell>(me).at(0);
      const auto busy = take<cpu_cell>(me).at(0);
      const auto done = take<plain_cell>(me).at(0);
      const auto last = static_cast<word>(rounds<TypeParam>(20));
      if (me.rank() == 1) {
        for (word i = 1; i <= last; ++i) {
          port.add(asked, 1);
          port.flush(0);
          rma::put_now(port, done, i);
        }
        return;
      }
      // It never waits, as a participant that has the lock again and again does not.
      const rma::deadline never_answered = port.deadline_in(20'000'000'000);
      while (port.load(done) < last) {
        static_cast<void>(port.cpu_fetch_add(busy, 1));
        require(!port.is_over(never_answered), "who asks is answered");
      }
      require(port.load(asked) == last, "what was asked has been done");
    });
  }
}

}  // namespace
}  // namespace lockflight::test
