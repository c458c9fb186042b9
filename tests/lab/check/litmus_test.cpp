// Litmus tests of the checker's two memories: which outcomes of small programs each of them has.
//
// The expected outcomes are those of the literature, by the names that it uses:
// [herd]   Alglave, Maranget and Tautschnig, "Herding Cats: Modelling, Simulation, Testing, and
// Data
//          Mining for Weak Memory", TOPLAS 2014
// [tso]    Sewell, Sarkar, Owens, Zappa Nardelli and Myreen, "x86-TSO", CACM 2010
// [rc11]   Lahav, Vafeiadis, Kang, Hur and Dreyer, "Repairing Sequential Consistency in C/C++11",
//          PLDI 2017
// [genmc]  verdicts of GenMC 0.10.3 (Kokologiannakis and Vafeiadis, "GenMC: A Model Checker for
// Weak
//          Memory Models", CAV 2021) with --tso and --rc11, on the same program in C
//
// Stores release, loads acquire, RMWs do both and have a fence behind them, as in
// include/lockflight/fabric/cpu_operations.hpp, unless a program changes that.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "lab/check/engine/port.hpp"
#include "lab/check/search/search.hpp"
#include "two_cells.hpp"

namespace lockflight::check {
namespace {

/// A participant of a litmus program: its operations, and a place for its results.
class thread {
 public:
  thread(engine& e, port& p) : engine_(e), port_(p) {}

  [[nodiscard]] rank_t rank() const { return port_.rank(); }
  [[nodiscard]] port& ops() { return port_; }
  [[nodiscard]] engine& rules() { return engine_; }

  [[nodiscard]] word load(std::uint32_t cell) { return port_.load(at(cell)); }
  void store(std::uint32_t cell, word value) { port_.store(at(cell), value); }
  [[nodiscard]] word fetch_add(std::uint32_t cell, word value) {
    return port_.cpu_fetch_add(cpu(cell), value);
  }
  [[nodiscard]] word compare_swap(std::uint32_t cell, word expected, word desired) {
    return port_.cpu_compare_swap(cpu(cell), expected, desired);
  }
  void put_now(std::uint32_t cell, word value) { rma::put_now(port_, at(cell), value); }
  [[nodiscard]] word get_now(std::uint32_t cell) { return rma::get_now(port_, at(cell)); }
  void fence() { port_.fence(); }

  /// Uses data that no other participant may use without having seen this.
  void use_data() {
    engine_.enter(rank(), true);
    engine_.act(rank(), action::critical);
    engine_.leave(rank(), true);
  }

  /// A result, for the judgement at the end.
  void result(std::uint32_t number, word value) { port_.store(place(number), value); }
  [[nodiscard]] rma::plain_cell place(std::uint32_t number) const {
    return {rank(), 512 + 8 * number};
  }

 private:
  [[nodiscard]] static rma::plain_cell at(std::uint32_t cell) { return {0, cell}; }
  [[nodiscard]] static rma::cpu_cell cpu(std::uint32_t cell) { return {0, cell}; }

  engine& engine_;
  port& port_;
};

/// The end of an execution: the results of each rank, and the last values of cells.
class ended {
 public:
  explicit ended(const engine& e) : engine_(e) {}
  [[nodiscard]] word result(rank_t rank, std::uint32_t number) const {
    return engine_.value(rma::plain_cell{rank, 512 + 8 * number});
  }
  [[nodiscard]] word last(std::uint32_t cell) const {
    return engine_.value(rma::plain_cell{0, cell});
  }

 private:
  const engine& engine_;
};

constexpr std::uint32_t z = 24;

using thread_body = std::function<void(thread&)>;

struct program_of_table {
  const char* name;
  const char* source;
  bool tso;    ///< the outcome is possible there
  bool views;  ///< and there
  std::vector<thread_body> bodies;
  std::function<bool(const ended&)> outcome = [](const ended&) { return false; };
  port_orders orders = {};
};

void PrintTo(const program_of_table& p, std::ostream* out) { *out << p.name; }

/// "seen" if the outcome is possible, or the rule that is broken; empty if neither.
[[nodiscard]] std::string search_for(const program_of_table& of, memory_kind memory, bool delays) {
  const program runs{rma::topology::flat(static_cast<int>(of.bodies.size())),
                     [&of](engine& e, rank_t me) {
                       port p(e, me);
                       thread t(e, p);
                       of.bodies[static_cast<std::size_t>(me)](t);
                       p.fence();
                       p.rendezvous();
                       if (me == 0 && of.outcome(ended(e))) e.fail("seen", of.name);
                     }};
  model how;
  how.memory = memory;
  how.orders = of.orders;
  how.delayed_effects = delays;
  engine e(runs, how);
  const outcome found = search_all(e, {.shorten = false});
  return found.broken ? found.broken->property : "";
}

class litmus_table : public testing::TestWithParam<program_of_table> {};

// Posted operations take effect at any moment until their flush, or at once, as in shared memory.
TEST_P(litmus_table, has_the_outcomes_of_the_literature) {
  for (const bool delays : {true, false}) {
    EXPECT_EQ(search_for(GetParam(), memory_kind::tso, delays) != "", GetParam().tso)
        << "tso " << search_for(GetParam(), memory_kind::tso, delays) << delays;
    EXPECT_EQ(search_for(GetParam(), memory_kind::views, delays) != "", GetParam().views)
        << "views " << search_for(GetParam(), memory_kind::views, delays) << delays;
  }
}

// ---- the pieces of the programs ----

[[nodiscard]] thread_body writes(std::uint32_t cell, word value) {
  return [=](thread& t) { t.store(cell, value); };
}
/// Loads the cells in turn; the results have these numbers.
[[nodiscard]] thread_body reads(std::vector<std::uint32_t> cells, bool fenced = false) {
  return [=](thread& t) {
    for (std::uint32_t i = 0; i < cells.size(); ++i) {
      if (i > 0 && fenced) t.fence();
      t.result(i, t.load(cells[i]));
    }
  };
}
[[nodiscard]] thread_body then(thread_body first, thread_body second) {
  return [=](thread& t) {
    first(t);
    second(t);
  };
}
[[nodiscard]] thread_body fenced_then(thread_body first, thread_body second) {
  return [=](thread& t) {
    first(t);
    t.fence();
    second(t);
  };
}
/// Ends if the load finds another value: the rest is about executions in which it finds this one.
[[nodiscard]] thread_body if_reads(std::uint32_t cell, word value, thread_body rest) {
  return [=](thread& t) {
    const word found = t.load(cell);
    t.result(0, found);
    if (found == value) rest(t);
  };
}

[[nodiscard]] std::function<bool(const ended&)> results(
    std::vector<std::pair<std::pair<rank_t, std::uint32_t>, word>> expected) {
  return [=](const ended& e) {
    for (const auto& [which, value] : expected)
      if (e.result(which.first, which.second) != value) return false;
    return true;
  };
}
[[nodiscard]] std::function<bool(const ended&)> last(word of_x, word of_y) {
  return [=](const ended& e) { return e.last(x) == of_x && e.last(y) == of_y; };
}

/// The orders of the port with one change.
template <class Change>
[[nodiscard]] port_orders with(Change change) {
  port_orders orders;
  change(orders);
  return orders;
}
const port_orders relaxed_loads = with([](port_orders& o) { o.load.acquires = false; });
const port_orders relaxed_stores = with([](port_orders& o) { o.store.releases = false; });
const port_orders relaxed_both =
    with([](port_orders& o) { o.load.acquires = o.store.releases = false; });
const port_orders relaxed_rmw = with([](port_orders& o) {
  o.cpu_rmw = {.acquires = false, .releases = false};
  o.fence_after_rmw = false;
});
const port_orders no_rmw_fence = with([](port_orders& o) { o.fence_after_rmw = false; });

// clang-format off
const std::vector<program_of_table> of_literature{
    {"SB", "[herd] [tso]", true, true,
     {then(writes(x, 1), reads({y})), then(writes(y, 1), reads({x}))},
     results({{{0, 0}, 0}, {{1, 0}, 0}})},
    {"SB_fences", "[herd] [tso]", false, false,
     {fenced_then(writes(x, 1), reads({y})), fenced_then(writes(y, 1), reads({x}))},
     results({{{0, 0}, 0}, {{1, 0}, 0}})},
    {"SB_one_fence", "[herd] [tso]", true, true,
     {fenced_then(writes(x, 1), reads({y})), then(writes(y, 1), reads({x}))},
     results({{{0, 0}, 0}, {{1, 0}, 0}})},
    {"MP", "[herd] [tso]", false, false,
     {then(writes(x, 1), writes(y, 1)), reads({y, x})},
     results({{{1, 0}, 1}, {{1, 1}, 0}})},
    {"MP_relaxed_loads", "[rc11]", false, true,
     {then(writes(x, 1), writes(y, 1)), reads({y, x})},
     results({{{1, 0}, 1}, {{1, 1}, 0}}), relaxed_loads},
    {"MP_relaxed_stores", "[rc11]", false, true,
     {then(writes(x, 1), writes(y, 1)), reads({y, x})},
     results({{{1, 0}, 1}, {{1, 1}, 0}}), relaxed_stores},
    {"MP_relaxed_and_fences", "[rc11]", false, false,
     {fenced_then(writes(x, 1), writes(y, 1)), reads({y, x}, true)},
     results({{{1, 0}, 1}, {{1, 1}, 0}}), relaxed_both},
    {"LB", "[herd] [rc11]", false, false,
     {then(reads({x}), writes(y, 1)), then(reads({y}), writes(x, 1))},
     results({{{0, 0}, 1}, {{1, 0}, 1}})},
    {"S", "[herd]", false, false,
     {then(writes(x, 2), writes(y, 1)), if_reads(y, 1, writes(x, 1))},
     [](const ended& e) { return e.result(1, 0) == 1 && e.last(x) == 2; }},
    {"R", "[herd] [tso]", true, true,
     {then(writes(x, 1), writes(y, 1)), then(writes(y, 2), reads({x}))},
     [](const ended& e) { return e.result(1, 0) == 0 && e.last(y) == 2; }},
    {"R_fences", "[herd]", false, false,
     {fenced_then(writes(x, 1), writes(y, 1)), fenced_then(writes(y, 2), reads({x}))},
     [](const ended& e) { return e.result(1, 0) == 0 && e.last(y) == 2; }},
    {"2_2W", "[herd] [rc11]", false, true,
     {then(writes(x, 1), writes(y, 2)), then(writes(y, 1), writes(x, 2))}, last(1, 1)},
    {"2_2W_fences", "[herd] [rc11]", false, false,
     {fenced_then(writes(x, 1), writes(y, 2)), fenced_then(writes(y, 1), writes(x, 2))}, last(1, 1)},
    {"CoWW", "[herd]", false, false, {then(writes(x, 1), writes(x, 2)), reads({y})},
     [](const ended& e) { return e.last(x) == 1; }},
    {"CoRR", "[herd]", false, false, {writes(x, 1), reads({x, x})},
     results({{{1, 0}, 1}, {{1, 1}, 0}})},
    {"CoRR_relaxed", "[rc11]", false, false, {writes(x, 1), reads({x, x})},
     results({{{1, 0}, 1}, {{1, 1}, 0}}), relaxed_both},
    {"CoRR_two_readers", "[herd]", false, false,
     {writes(x, 1), writes(x, 2), reads({x, x}), reads({x, x})},
     results({{{2, 0}, 1}, {{2, 1}, 2}, {{3, 0}, 2}, {{3, 1}, 1}})},
    {"CoWR", "[herd]", false, false, {then(writes(x, 1), reads({x})), writes(x, 2)},
     [](const ended& e) { return e.result(0, 0) == 2 && e.last(x) == 1; }},
    {"CoRW", "[herd]", false, false, {if_reads(x, 2, writes(x, 1)), writes(x, 2)},
     [](const ended& e) { return e.result(0, 0) == 2 && e.last(x) == 2; }},
    {"WRC", "[herd]", false, false,
     {writes(x, 1), if_reads(x, 1, writes(y, 1)), reads({y, x})},
     results({{{2, 0}, 1}, {{2, 1}, 0}})},
    {"ISA2", "[herd]", false, false,
     {then(writes(x, 1), writes(y, 1)), if_reads(y, 1, writes(z, 1)), reads({z, x})},
     results({{{2, 0}, 1}, {{2, 1}, 0}})},
    {"IRIW", "[herd] [rc11]", false, true,
     {writes(x, 1), writes(y, 1), reads({x, y}), reads({y, x})},
     results({{{2, 0}, 1}, {{2, 1}, 0}, {{3, 0}, 1}, {{3, 1}, 0}})},
    {"IRIW_fences", "[herd] [rc11]", false, false,
     {writes(x, 1), writes(y, 1), reads({x, y}, true), reads({y, x}, true)},
     results({{{2, 0}, 1}, {{2, 1}, 0}, {{3, 0}, 1}, {{3, 1}, 0}})},
    {"RWC_one_fence", "[herd] [rc11]", false, true,
     {writes(x, 1), reads({x, y}), fenced_then(writes(y, 1), reads({x}))},
     results({{{1, 0}, 1}, {{1, 1}, 0}, {{2, 0}, 0}})},
    {"RWC_fences", "[herd] [rc11]", false, false,
     {writes(x, 1), reads({x, y}, true), fenced_then(writes(y, 1), reads({x}))},
     results({{{1, 0}, 1}, {{1, 1}, 0}, {{2, 0}, 0}})},
    {"W_RWC_fences", "[herd] [rc11]", false, true,
     {then(writes(x, 1), writes(z, 1)), if_reads(z, 1, reads({z, y})),
      fenced_then(writes(y, 1), reads({x}))},
     results({{{1, 0}, 1}, {{1, 1}, 0}, {{2, 0}, 0}})},
    {"two_RMWs", "[rc11]", false, false,
     {[](thread& t) { t.result(0, t.fetch_add(x, 1)); },
      [](thread& t) { t.result(0, t.fetch_add(x, 1)); }},
     results({{{0, 0}, 0}, {{1, 0}, 0}})},
    {"RMW_and_store", "[rc11]", false, false,  // no store comes between the two parts of an RMW
     {[](thread& t) { t.result(0, t.fetch_add(x, 4)); }, writes(x, 1), writes(x, 2)},
     [](const ended& e) { return e.result(0, 0) == 1 && e.last(x) == 4; }},
    {"release_sequence", "[rc11]", false, false,  // also through an RMW that is relaxed
     {then(writes(x, 1), writes(y, 1)), [](thread& t) { t.result(0, t.fetch_add(y, 1)); },
      reads({y, x})},
     results({{{1, 0}, 1}, {{2, 0}, 2}, {{2, 1}, 0}}), relaxed_rmw},
    {"MP_relaxed_RMW", "[rc11]", false, true,
     {[](thread& t) {
        t.store(x, 1);
        t.result(0, t.fetch_add(y, 1));
      },
      reads({y, x})},
     results({{{1, 0}, 1}, {{1, 1}, 0}}), relaxed_rmw},
};

// Places of our own code, and what GenMC says of them.
const std::vector<program_of_table> of_our_places{
    // C14, for a store and an RMW, and for a compare-swap that fails.
    {"c14_rmw", "[genmc]", false, true,
     {[](thread& t) {
        t.store(x, 1);
        t.result(0, t.fetch_add(y, 2));
      },
      [](thread& t) {
        t.store(y, 1);
        t.result(0, t.fetch_add(x, 2));
      }},
     results({{{0, 0}, 0}, {{1, 0}, 0}})},
    {"c14_failing_compare_swap", "[genmc]", false, true,
     {[](thread& t) {
        t.store(x, 1);
        t.result(0, t.compare_swap(y, 5, 6));
      },
      [](thread& t) {
        t.store(y, 1);
        t.result(0, t.compare_swap(x, 5, 6));
      }},
     results({{{0, 0}, 0}, {{1, 0}, 0}})},
    // Two puts that are flushed, and two observers.
    {"IRIW_flushed_puts", "[genmc]", false, true,
     {[](thread& t) { t.put_now(x, 1); }, [](thread& t) { t.put_now(y, 1); }, reads({x, y}),
      reads({y, x})},
     results({{{2, 0}, 1}, {{2, 1}, 0}, {{3, 0}, 1}, {{3, 1}, 0}})},
};
// clang-format on

/// A store, and a sleeper that arms at a bell (`parked`, `rung`) and reads the cell once more.
[[nodiscard]] program_of_table bell_store(bool fenced) {
  constexpr std::uint32_t cell = x, parked = y, rung = z;
  return {
      fenced ? "bell_store_fence" : "bell_store",
      "[genmc]",
      !fenced,
      !fenced,
      {[=](thread& t) {
         t.store(cell, 1);
         if (fenced) t.fence();
         if (t.load(parked) != 0) static_cast<void>(t.fetch_add(rung, 1));
       },
       [=](thread& t) {
         if (t.load(cell) == 1) return;
         t.result(0, t.load(rung) + 1);
         static_cast<void>(t.fetch_add(parked, 1));
         if (t.load(cell) == 0) t.result(1, 1);
       }},
      [=](const ended& e) { return e.result(1, 1) == 1 && e.last(rung) + 1 == e.result(1, 0); }};
}

/// The wake word of a semaphore: the read of `parked` behind an RMW that has no fence.
[[nodiscard]] program_of_table sem_wake(bool fenced) {
  constexpr std::uint32_t unit = x, released = y, parked = z, rung = 32;
  return {fenced ? "sem_wake_fence" : "sem_wake",
          "[genmc]",
          false,
          !fenced,
          {[=](thread& t) {
             t.store(unit, 1);  // free
             static_cast<void>(t.fetch_add(released, 1));
             if (fenced) t.fence();
             if (t.load(parked) != 0) static_cast<void>(t.fetch_add(rung, 1));
           },
           [=](thread& t) {
             const word seen = t.load(released);
             if (t.load(unit) == 1) return;
             t.result(0, t.load(rung) + 1);
             static_cast<void>(t.fetch_add(parked, 1));
             t.fence();
             if (t.load(released) == seen) t.result(1, 1);
           }},
          [=](const ended& e) { return e.result(1, 1) == 1 && e.last(rung) + 1 == e.result(1, 0); },
          no_rmw_fence};
}

/// mcs-rw-fair: a writer wakes a reader, which then reads `successor_class`; another reader
/// announces itself there and reads whether the first one waits.
[[nodiscard]] program_of_table rwc_fair(bool fenced) {
  constexpr std::uint32_t blocked = x, successor_class = y;
  return {fenced ? "rwc_fair_fence" : "rwc_fair",
          "[genmc]",
          false,
          !fenced,
          {[=](thread& t) { t.put_now(blocked, 2); },
           [=](thread& t) {
             if (t.load(blocked) == 0) return;
             if (fenced) t.fence();
             t.result(0, 1 + t.load(successor_class));
           },
           [=](thread& t) {
             t.put_now(successor_class, 1);
             t.result(0, 1 + t.get_now(blocked));
           }},
          results({{{1, 0}, 1}, {{2, 0}, 1}})};
}

/// The lock of a node in flight: a holder that passes the lock on and finds nobody, and a waiter
/// that quits. Exactly one of them takes what was passed.
[[nodiscard]] program_of_table node_lock(bool fences) {
  constexpr std::uint32_t word_of_lock = x, tail = y;  // word: 0 held, 2 passed; tail: 0 waits
  return {fences ? "node_lock" : "node_lock_without_rmw_fence",
          "[genmc]",
          false,
          !fences,
          {[=](thread& t) {
             t.store(word_of_lock, 2);
             t.fence();
             if (t.load(tail) == 0)
               t.result(0, 1);  // delivered
             else if (t.compare_swap(word_of_lock, 2, 3) == 2)
               t.result(1, 1);  // took it back
             else
               t.result(0, 1);
           },
           [=](thread& t) {
             static_cast<void>(t.compare_swap(tail, 0, 1));
             const word found = t.load(word_of_lock);
             if (found == 2 && t.compare_swap(word_of_lock, 2, 3) == 2) t.result(0, 1);  // took it
           }},
          [](const ended& e) {
            return e.result(0, 0) != e.result(1, 0) || e.result(0, 1) == e.result(1, 0);
          },
          fences ? port_orders{} : no_rmw_fence};
}

/// The counter of a reader of flight-rw that is alone in it, and a writer that closes the gate.
[[nodiscard]] program_of_table flight_rw_gate(bool fences) {
  constexpr std::uint32_t gate = x, counter = y;
  return {fences ? "flight_rw" : "flight_rw_without_rmw_fence",
          "[genmc]",
          false,
          !fences,
          {[=](thread& t) {
             static_cast<void>(t.fetch_add(counter, 1));
             if (t.load(gate) == 0) t.use_data();
             t.store(counter, 0);
           },
           [=](thread& t) {
             t.store(gate, 1);
             t.fence();
             if (t.load(counter) != 0) return;
             t.use_data();
             t.store(gate, 0);
           }},
          [](const ended&) { return false; },
          fences ? port_orders{} : no_rmw_fence};
}

/// Peterson's algorithm as in alock and flight: the flag by an RMW, the victim by a store.
[[nodiscard]] program_of_table peterson(bool fences) {
  const auto side = [](std::uint32_t mine, std::uint32_t other, word me) {
    return [=](thread& t) {
      static_cast<void>(t.compare_swap(mine, 0, 1));
      if (t.load(other) != 0) {
        t.store(z, me);
        t.fence();
        if (t.load(other) != 0 && t.load(z) == me) return;
      }
      t.use_data();
      static_cast<void>(t.compare_swap(mine, 1, 0));
    };
  };
  return {fences ? "peterson" : "peterson_without_rmw_fence",
          "[genmc]",
          false,
          !fences,
          {side(x, y, 1), side(y, x, 2)},
          [](const ended&) { return false; },
          fences ? port_orders{} : no_rmw_fence};
}

INSTANTIATE_TEST_SUITE_P(literature, litmus_table, testing::ValuesIn(of_literature),
                         [](const auto& row) { return std::string(row.param.name); });
INSTANTIATE_TEST_SUITE_P(places, litmus_table, testing::ValuesIn(of_our_places),
                         [](const auto& row) { return std::string(row.param.name); });
INSTANTIATE_TEST_SUITE_P(of_locks, litmus_table,
                         testing::Values(bell_store(false), bell_store(true), sem_wake(false),
                                         sem_wake(true), rwc_fair(false), rwc_fair(true),
                                         node_lock(true), node_lock(false), flight_rw_gate(true),
                                         flight_rw_gate(false), peterson(true), peterson(false)),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace lockflight::check
