// The common parts of the contract's tests: the fabrics they run on, the machines, the kinds of
// writes.
//
// A body runs on every rank, perhaps in other processes, perhaps many times over (a checker), so it
// captures nothing that it changes, holds nothing on the heap between two operations of its port,
// and reports through cells and test::require.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <thread>

#include "lockflight/fabric/decorator.hpp"
#include "lockflight/rma/barrier.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/sanitizers.hpp"

namespace lockflight::test {

using rma::cpu_cell;
using rma::nic_cell;
using rma::plain_cell;
using rma::rank_t;
using rma::word;

/// The fabrics that the whole contract suite runs on, and their modes. A new fabric is appended
/// here. (A binary of a launch has only the fabric of that launch, one on the
/// simulator only that.)
#if defined(LOCKFLIGHT_TEST_ON_LAUNCH)
using contract_fabrics = ::testing::Types<launched_fabric>;
using capability_fabrics = contract_fabrics;
inline constexpr std::array contract_modes{launched_nodes, launched_shared};
inline constexpr std::span<const mode> waiting_modes{};
#elif defined(LOCKFLIGHT_TEST_ON_SIM)
using contract_fabrics = ::testing::Types<sim_fabric>;
using capability_fabrics = contract_fabrics;
inline constexpr std::array contract_modes = sim_modes;
inline constexpr std::span<const mode> waiting_modes{};
#else
using contract_fabrics = ::testing::Types<shm_plain, shm_delayed>;

// ---- every policy of waiting, for the clauses about waiting ----

namespace detail {
// A rank that spins uses its core for as long as the kernel lets it: on a machine with fewer cores
// than ranks each handoff takes a time slice.
constexpr mode spinning(mode of) {
  of.waiting = "spin";
  of.most_ranks = 2;
  of.most_rounds = 100;
  return of;
}
}  // namespace detail

#if defined(LOCKFLIGHT_TEST_TSAN)
// ThreadSanitizer does not see across processes.
inline constexpr std::array contract_modes{usual_modes[1]};
inline constexpr std::array waiting_modes{
    detail::spinning({.name = "threads_spin", .threads = true}),
    mode{.name = "threads_yield", .threads = true, .waiting = "yield"},
    mode{.name = "threads_park", .threads = true, .waiting = "park"},
};
#else
inline constexpr std::array contract_modes = usual_modes;
inline constexpr std::array waiting_modes{
    detail::spinning({.name = "processes_spin"}),
    detail::spinning({.name = "threads_spin", .threads = true}),
    mode{.name = "processes_yield", .waiting = "yield"},
    mode{.name = "threads_yield", .threads = true, .waiting = "yield"},
    mode{.name = "processes_park", .waiting = "park"},
    mode{.name = "threads_park", .threads = true, .waiting = "park"},
};
#endif
#endif

/// Hides the capabilities of a fabric beyond the contract's minimum.
template <rma::port Inner>
class minimal : public fabric::decorator<Inner> {
 public:
  static constexpr rma::capability_set capabilities{.fabric = "minimal"};
  [[nodiscard]] static constexpr bool orders_posts() { return capabilities.ordered_posts; }
  using fabric::decorator<Inner>::decorator;
};

/// Shared memory that declares no capability: the clauses about capabilities must skip on it, and
/// say so.
struct shm_minimal {
  static constexpr const char* name = "shm_minimal";
  static constexpr bool shares_memory = true;
  using port_type = minimal<shm::port>;

  template <class Body>
  static void run(const rma::topology& machine, Body body) {
    const shm::config what{.machine = machine, .threads = true};
    shm::run_ports(what, [&](shm::port& bare) {
      port_type p(bare);
      rma::participant<port_type> me(p, what.words_per_rank);
      body(me);
    });
  }
};

#if !defined(LOCKFLIGHT_TEST_ON_LAUNCH) && !defined(LOCKFLIGHT_TEST_ON_SIM)
using capability_fabrics = ::testing::Types<shm_plain, shm_delayed, shm_minimal>;
#endif

/// The suite; each file says on which fabrics and in which modes its clauses run.
template <class Fabric>
class contract : public ::testing::Test {};

struct fabric_names {
  template <class Fabric>
  static std::string GetName(int) {
    return Fabric::name;
  }
};

// ---- running ----

/// Runs the body on every rank of the machine; skips, and says so, where the fabric is too small.
template <class Fabric, class Body>
void run_on(const rma::topology& machine, Body body) {
  if (!fits<Fabric>(machine))
    GTEST_SKIP() << "needs " << machine.ranks() << " ranks, more than " << Fabric::name
                 << " runs here in the mode " << mode_now().name;
  Fabric::run(machine, body);
}

/// More ranks than cores, and more than two.
[[nodiscard]] inline int crowd() {
  return std::clamp(2 * static_cast<int>(std::thread::hardware_concurrency()), 8, 32);
}

[[nodiscard]] inline rma::topology one_node(int ranks) { return rma::topology::flat(ranks); }
[[nodiscard]] inline rma::topology nodes(int count, int ranks_each) {
  return rma::topology::balanced({count, ranks_each});
}

/// `count` cells at the same index on every rank.
template <class Cell, class Me>
[[nodiscard]] Cell take(Me& me, int count = 1) {
  return me.cells().template take<Cell>(static_cast<std::uint32_t>(count));
}

template <class Cell>
[[nodiscard]] constexpr Cell nth(Cell first, int i) {
  return first + static_cast<std::uint32_t>(i);
}

/// Lets the ranks of a litmus test meet at different moments. Local work only.
inline void jitter(std::minstd_rand& random, std::uint32_t most = 64) {
  // The fence costs nothing and keeps the loop.
  for (auto left = random() % most; left > 0; --left)
    std::atomic_signal_fence(std::memory_order_seq_cst);
}
[[nodiscard]] inline std::minstd_rand jitter_of(rank_t rank) {
  return std::minstd_rand(seed() * 7919 + static_cast<std::uint64_t>(rank) + 1);
}

// ---- the ways to change a cell ----

enum class writing : std::uint8_t {
  put_plain,
  put_cpu,
  put_nic,
  add,
  fetch_add,
  swap,
  compare_swap,
  store_plain,  // from here on only on the own node
  store_cpu,
  cpu_fetch_add,
  cpu_swap,
  cpu_compare_swap,
};
inline constexpr std::array all_writings{
    writing::put_plain, writing::put_cpu,       writing::put_nic,      writing::add,
    writing::fetch_add, writing::swap,          writing::compare_swap, writing::store_plain,
    writing::store_cpu, writing::cpu_fetch_add, writing::cpu_swap,     writing::cpu_compare_swap,
};
inline constexpr int posted_writings = static_cast<int>(writing::store_plain);

/// A cell of each class.
struct one_of_each {
  plain_cell plain;
  cpu_cell cpu;
  nic_cell nic;

  template <class Me>
  static one_of_each take_from(Me& me) {
    return {take<plain_cell>(me), take<cpu_cell>(me), take<nic_cell>(me)};
  }
  [[nodiscard]] one_of_each at(rank_t rank) const {
    return {plain.at(rank), cpu.at(rank), nic.at(rank)};
  }
};

/// Calls `use` with the target cell of this kind of write.
template <class Use>
void on_cell_of(writing how, const one_of_each& cells, Use use) {
  switch (how) {
    case writing::put_plain:
    case writing::store_plain:
      return use(cells.plain);
    case writing::put_nic:
    case writing::add:
    case writing::fetch_add:
    case writing::swap:
    case writing::compare_swap:
      return use(cells.nic);
    default:
      return use(cells.cpu);
  }
}

/// Changes the cell from `before` to `before + 1`; complete when it returns.
template <class Port>
void increment(Port& p, writing how, const one_of_each& cells, word before) {
  word found = before;
  switch (how) {
    case writing::put_plain:
      return rma::put_now(p, cells.plain, before + 1);
    case writing::put_cpu:
      return rma::put_now(p, cells.cpu, before + 1);
    case writing::put_nic:
      return rma::put_now(p, cells.nic, before + 1);
    case writing::add:
      p.add(cells.nic, 1);
      return p.flush(cells.nic.home);
    case writing::store_plain:
      return p.store(cells.plain, before + 1);
    case writing::store_cpu:
      return p.store(cells.cpu, before + 1);
    case writing::fetch_add:
      found = rma::fetch_add_now(p, cells.nic, 1);
      break;
    case writing::swap:
      found = rma::swap_now(p, cells.nic, before + 1);
      break;
    case writing::compare_swap:
      found = rma::compare_swap_now(p, cells.nic, before, before + 1);
      break;
    case writing::cpu_fetch_add:
      found = p.cpu_fetch_add(cells.cpu, 1);
      break;
    case writing::cpu_swap:
      found = p.cpu_swap(cells.cpu, before + 1);
      break;
    case writing::cpu_compare_swap:
      found = p.cpu_compare_swap(cells.cpu, before, before + 1);
      break;
  }
  require(found == before, "a read-modify-write returns what the cell held");
}

/// Runs `body(port, me)` on rank 0 of 2 nodes with 2 ranks each; the others only exist.
template <rma::port Port, class Body>
void on_rank_0_of_two_nodes(Body body) {
  shm::run_ports({.machine = nodes(2, 2), .threads = true}, [&](shm::port& bare) {
    if (bare.rank() != 0) return;
    Port port(bare);
    rma::participant<Port> me(port, 4096);
    body(port, me);
  });
}

}  // namespace lockflight::test
