// The configurations that a run accepts and refuses, its size, and the places of its ranks.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "lockflight/lock/create.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/rma/barrier.hpp"
#include "support.hpp"

namespace lockflight::test {
namespace {

using participant = rma::participant<shm::port>;

/// The processors that the kernel lets this thread use.
std::set<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::set<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) allowed.insert(cpu);
  return allowed;
}

void use_only(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  require(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

/// The exception of the call, as "type: text".
template <class Call>
std::string complaint(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& e) {
    return std::string("invalid_argument: ") + e.what();
  } catch (const std::system_error& e) {
    return std::string("system_error: ") + e.what();
  } catch (const std::exception& e) {
    return std::string("another: ") + e.what();
  }
  return "none";
}

// ---- many ranks ----

/// All ranks meet, and each takes the lock once.
void meet(const shm::config& what, int rounds = 1) {
  shm::run(what, [&](participant& me) {
    rma::barrier all(me);
    auto mutex = lock::create<lock::d_mcs>(me);
    const auto sum = me.cells().take<rma::plain_cell>(1);
    for (int i = 0; i < rounds; ++i) {
      all.arrive_and_wait();
      mutex.lock();
      rma::put_now(me.port(), sum, rma::get_now(me.port(), sum) + 1);
      mutex.unlock();
    }
    all.arrive_and_wait();
    const auto expected = static_cast<rma::word>(rounds * me.machine().ranks());
    require(rma::get_now(me.port(), sum) == expected, "each rank adds one each round");
  });
}

TEST(run, starts_and_finishes_256_ranks) {
  for (const bool threads : {false, true}) {
    const traces before = traces::now();
    EXPECT_NO_THROW(meet({.machine = rma::topology::balanced({16, 16}), .threads = threads}));
    EXPECT_EQ(traces::now().file_descriptors, before.file_descriptors);
    EXPECT_FALSE(traces::now().children);
  }
}

// More ranks than cores in every way of waiting: nothing stands still.
TEST(run, waits_in_every_way_with_8_ranks) {
  for (const bool threads : {false, true})
    for (const char* const waiting : {"auto", "spin", "yield", "park"}) {
      SCOPED_TRACE(std::string(waiting) + (threads ? ", threads" : ", processes"));
      // A rank that spins uses its core until the kernel takes it away: each handoff lasts time
      // slices.
      const int rounds = waiting == std::string("spin") ? 2 : 50;
      EXPECT_NO_THROW(meet(
          {.machine = rma::topology::flat(8), .threads = threads, .waiting = waiting}, rounds));
    }
}

// Stores without fences, and the barrier on every processor before a sleep, are for ranks that have
// cores of their own; here they are made to share.
TEST(run, waits_when_told_of_more_processors_than_there_are) {
  for (const char* const waiting : {"auto", "yield", "park"}) {
    SCOPED_TRACE(waiting);
    EXPECT_NO_THROW(
        meet({.machine = rma::topology::flat(8), .waiting = waiting, .processors = 8}, 50));
  }
}

TEST(run, ports_say_whether_ranks_share_cores) {
  for (const int processors : {1, 2, 3}) {
    std::atomic<int> sharing = 0;
    shm::run_ports({.machine = rma::topology::flat(2), .threads = true, .processors = processors},
                   [&](shm::port& p) { sharing += rma::shares_cores(p) ? 1 : 0; });
    EXPECT_EQ(sharing, processors < 2 ? 2 : 0) << processors;
  }
}

TEST(run, leaves_nothing_behind) {
  const traces before = traces::now();
  for (const bool threads : {false, true})
    for (int i = 0; i < 5; ++i) meet({.machine = rma::topology::flat(3), .threads = threads});
  const traces after = traces::now();
  EXPECT_EQ(after.file_descriptors, before.file_descriptors);
  EXPECT_EQ(after.mappings, 0);
  EXPECT_EQ(after.named_files, before.named_files);
  EXPECT_FALSE(after.children);
}

// ---- what is refused ----

TEST(run, refuses_more_ranks_than_it_can_start) {
  const auto nothing = [](shm::port&) {};
  EXPECT_EQ(complaint([&] {
              shm::run_ports({.machine = rma::topology::flat(shm::most_ranks + 1)}, nothing);
            }),
            "invalid_argument: 4097 ranks (accepted: 1 to 4096 on shm)");
}

TEST(run, refuses_a_way_of_waiting_that_it_does_not_know) {
  for (const std::string bad : {"nap", "", "Auto", "spin "}) {
    std::atomic<int> ran{0};
    EXPECT_EQ(complaint([&] {
                shm::run_ports({.machine = rma::topology::flat(2), .threads = true, .waiting = bad},
                               [&](shm::port&) { ++ran; });
              }),
              "invalid_argument: '" + bad + "' (accepted: auto, spin, yield, park)");
    EXPECT_EQ(ran, 0) << "refused before anybody starts";
  }
}

TEST(run, refuses_segments_that_no_cell_could_address) {
  const auto nothing = [](shm::port&) {};
  EXPECT_TRUE(complaint([&] {
                shm::run_ports({.machine = rma::topology::flat(1), .words_per_rank = 3u << 30},
                               nothing);
              }).starts_with("invalid_argument: 3221225472 words"));
}

TEST(run, has_segments_as_large_as_asked) {
  for (const std::uint32_t words : {1u, 512u, 513u, 100'000u, 1u << 24})
    EXPECT_NO_THROW(shm::run_ports({.machine = rma::topology::flat(2), .words_per_rank = words},
                                   [&](shm::port& p) {
                                     const rma::plain_cell last{1 - p.rank(), words - 1};
                                     rma::put_now(p, last, 7);
                                     require(rma::get_now(p, last) == 7, "the last word is there");
                                   }));
}

// ---- the machine as it is found ----

TEST(discover, describes_as_many_ranks_as_asked) {
  const std::set<int> allowed = allowed_processors();
  const int processors = static_cast<int>(allowed.size());
  for (const int ranks : {1, 2, processors, processors + 1, 3 * processors + 1, 64, 1000}) {
    SCOPED_TRACE(ranks);
    const shm::hardware found = shm::discover(ranks);
    EXPECT_EQ(found.machine.ranks(), ranks);
    EXPECT_EQ(found.machine.nodes(), 1) << "one coherent machine";
    EXPECT_EQ(found.level_names.size(), static_cast<std::size_t>(found.machine.levels()));
    EXPECT_EQ(found.level_names.front(), "machine");
    EXPECT_LE(found.machine.levels(), 4) << "a tree of queues climbs no more";
    EXPECT_EQ(found.processors, processors);
    EXPECT_GE(found.cores, 1);
    EXPECT_LE(found.cores, found.processors);

    ASSERT_EQ(found.processor_of_rank.size(), static_cast<std::size_t>(ranks));
    std::map<int, int> ranks_on;
    for (const int processor : found.processor_of_rank) {
      EXPECT_TRUE(allowed.contains(processor)) << processor;
      ++ranks_on[processor];
    }
    // Evenly over all processors that there are ranks for.
    EXPECT_EQ(static_cast<int>(ranks_on.size()), std::min(ranks, processors));
    const auto [least, most] =
        std::minmax_element(ranks_on.begin(), ranks_on.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_LE(most->second - least->second, 1);
  }
}

// As `taskset` and batch systems do it.
TEST(discover, keeps_to_the_processors_that_this_process_may_use) {
  const int only = *allowed_processors().rbegin();
  EXPECT_NO_THROW(shm::run_ports({.machine = rma::topology::flat(1)}, [&](shm::port&) {
    use_only(only);
    const shm::hardware found = shm::discover(3);
    require(found.processors == 1, "one processor, not " + std::to_string(found.processors));
    require(found.cores == 1, "one core, not " + std::to_string(found.cores));
    require(found.processor_of_rank == std::vector{only, only, only}, "all ranks on it");
  }));
}

// ---- pinning ----

TEST(pinning, binds_each_rank_to_its_processor) {
  for (const int ranks : {1, 2, 5})
    for (const bool threads : {false, true}) {
      const std::vector<int> expected = shm::discover(ranks).processor_of_rank;
      const std::set<int> before = allowed_processors();
      EXPECT_NO_THROW(shm::run_ports(
          {.machine = rma::topology::flat(ranks), .threads = threads}, [&](shm::port& p) {
            require(allowed_processors() == std::set{expected[static_cast<std::size_t>(p.rank())]},
                    "bound to its processor");
          }));
      EXPECT_EQ(allowed_processors(), before) << "the caller is not bound";
    }
}

TEST(pinning, can_be_left_to_the_kernel) {
  const std::set<int> before = allowed_processors();
  for (const bool threads : {false, true})
    EXPECT_NO_THROW(
        shm::run_ports({.machine = rma::topology::flat(3), .threads = threads, .pin = false},
                       [&](shm::port&) { require(allowed_processors() == before, "unbound"); }));
}

}  // namespace
}  // namespace lockflight::test
