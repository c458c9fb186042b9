// C17 and C19 on shared memory: properties of waiting that only a wall clock shows, and the
// policies' names.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>

#include "tests/contract/support.hpp"

namespace lockflight::test {
namespace {

/// For about a second one rank writes at different moments while the other falls asleep. Returns
/// how many of the waits were as long as without a wake-up.
int waits_until_the_sleeper_looks_up(std::uint64_t run) {
  int long_waits = 0;
  const auto body = [&long_waits, run](shm::port& port) {
    using clock = std::chrono::steady_clock;
    constexpr auto looks_up_after = std::chrono::milliseconds(95);
    constexpr word enough = UINT64_MAX;
    const plain_cell ready{0, 8};
    const plain_cell awaited{1, 8};
    if (port.rank() == 0) {
      std::minstd_rand random(seed() + run);
      for (word i = 1, now = 0;; ++i) {
        while ((now = port.load(ready)) < i) port.pause(0);
        if (now == enough) return;
        jitter(random, 4'000);
        port.store(awaited, i);
      }
    }
    const auto end = clock::now() + std::chrono::seconds(1);
    for (word i = 1; clock::now() < end; ++i) {
      port.store(ready, i);
      const auto start = clock::now();
      port.await(awaited, rma::equals(i));
      long_waits += clock::now() - start > looks_up_after;
    }
    port.store(ready, enough);
  };
  shm::run_ports({.machine = one_node(2), .threads = true, .waiting = "park"}, body);
  return long_waits;
}

// A sleeper on shared memory also wakes now and then by itself, so a lost wake-up shows only in the
// time of the wait. One long wait may be caused by the machine; one in each of three runs is not.
TEST(contract_shm, C17_falling_asleep_misses_no_write) {
  int runs_with_long_waits = 0;
  for (std::uint64_t run = 0; run < 3; ++run) {
    if (waits_until_the_sleeper_looks_up(run) == 0) break;
    ++runs_with_long_waits;
  }
  EXPECT_LT(runs_with_long_waits, 3) << "seed " << seed();
}

// On the wall clock; a simulator's pause is its own time.
TEST(contract_shm, C19_a_pause_lasts) {
  shm::run_ports({.machine = one_node(1)}, [](shm::port& port) {
    for (const std::uint64_t ns : {std::uint64_t{20'000}, std::uint64_t{2'000'000}}) {
      const auto start = std::chrono::steady_clock::now();
      port.pause(ns);
      const auto lasted = std::chrono::steady_clock::now() - start;
      require(lasted >= std::chrono::nanoseconds(ns), "a pause lasts as long as it says");
    }
  });
}

TEST(contract_shm, C19_the_policies_have_names) {
  EXPECT_FALSE(shm::wait_policy::parse("spin", 2, 2).park);
  EXPECT_FALSE(shm::wait_policy::parse("yield", 2, 2).park);
  EXPECT_TRUE(shm::wait_policy::parse("park", 2, 2).park);
  EXPECT_GT(shm::wait_policy::parse("auto", 2, 2).spins, 0u);
  EXPECT_EQ(shm::wait_policy::parse("auto", 3, 2).spins, 0u) << "no spinning on a shared core";
  try {
    static_cast<void>(shm::wait_policy::parse("sleep", 2, 2));
    FAIL() << "'sleep' is no policy";
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("auto, spin, yield, park"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace lockflight::test
