// The benchmark on simulated machines: every lock under every workload, the same each time; and the
// requests that are refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "lab/bench/bench.hpp"
#include "lab/report/report.hpp"
#include "lab/sim/engine.hpp"
#include "refusals.hpp"

namespace lockflight::bench {
namespace {

using nlohmann::json;

std::string profile(const std::string& name) {
  const char* const root = std::getenv("LOCKFLIGHT_SOURCE_DIR");
  return std::string(root == nullptr ? "." : root) + "/lab/machines/" + name + ".toml";
}

request simulated(std::vector<std::string> locks, const std::string& workload = "ecsb") {
  request r;
  r.locks = std::move(locks);
  r.workload = workload;
  r.fabric = "sim";
  r.profile = profile("piz-daint");
  r.procs = {8};
  r.levels = "4x2";
  r.ops = 400;
  r.writers = 0.2;
  return r;
}

class SimulatedWorkloads : public ::testing::TestWithParam<std::string> {};

TEST_P(SimulatedWorkloads, RunWithEveryLock) {
  const json bench = run(simulated({"all"}, GetParam()));
  EXPECT_NO_THROW(report::validate(bench));
  EXPECT_GT(bench["runs"].size(), 12u);
  for (const json& one : bench["runs"]) {
    const std::string where = one["lock"].get<std::string>();
    EXPECT_EQ(one["fabric"], "sim") << where;
    EXPECT_EQ(one["machine"], "piz-daint") << where;
    EXPECT_EQ(one["violations"], 0) << where;
    EXPECT_EQ(one["ops"], 400) << where;
    EXPECT_GT(one["elapsed_s"].get<double>(), 0) << where;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SimulatedWorkloads,
                         ::testing::Values("lb", "ecsb", "sob", "wcsb", "warb", "dht", "table",
                                           "mix", "cascade", "contention", "dht-writer", "zipf"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Simulated, ARunIsTheSameEachTimeAndAnotherWithAnotherSeed) {
  request r = simulated({"spin", "rma-rw", "dlm-server"});
  const json once = run(r)["runs"];
  EXPECT_EQ(once, run(r)["runs"]);
  r.seed = 2;
  EXPECT_NE(once, run(r)["runs"]);
}

// ---- the locks as printed ----

json measured(const request& r) { return run(r)["runs"][0]; }

TEST(Simulated, LocksAsPrintedRunWhereTheyAreNamed) {
  for (const char* const workload : {"lb", "sob", "table", "mix", "dht-writer"}) {
    const json bench = run(simulated({"mcs-rw-wp-listing", "alock-listing"}, workload));
    EXPECT_NO_THROW(report::validate(bench));
    ASSERT_EQ(bench["runs"].size(), 2u) << workload;
    for (const json& one : bench["runs"]) EXPECT_EQ(one["violations"], 0) << workload;
  }
}

// What RMA-RW's listing lacks shows in a run, and mend_1 is enough to run it.
TEST(Simulated, TheListingOfRmaRwLetsAWriterInBesideReaders) {
  request r = simulated({"rma-rw-listing"}, "sob");
  r.procs = {16};
  r.levels = "4x4";
  r.ops = 4'000;
  r.set = {{"T_DC", 4}};
  EXPECT_GT(measured(r)["violations"], 0);
  r.set["mend_1"] = 1;
  EXPECT_EQ(measured(r)["violations"], 0);
}

// On the SCC, whose paper measured it: each shared lock changes the list of readers.
TEST(Simulated, SharedLocksOfThePrintedMcsCostMoreThanOurs) {
  request r = simulated({"mcs-rw-wp"}, "mix");
  r.profile = profile("scc");
  r.procs = {8};
  r.levels = "8x1";
  r.writers = 0;
  const double ours = measured(r)["latency_us"]["p50"];
  r.locks = {"mcs-rw-wp-listing"};
  const double printed = measured(r)["latency_us"]["p50"];
  EXPECT_GT(printed, 2 * ours);
  EXPECT_LT(printed, 6 * ours);
}

// An uncontended acquire is one round trip, and so is a release: the latency is what the machine
// file says. Rank 0 has the lock; rank 1 alone writes.
TEST(Simulated, LatencyIsTheMachines) {
  request r = simulated({"d-mcs"}, "lb");
  r.procs = {1};
  r.levels = "1x1";
  r.writers = 1;
  const json one = run(r)["runs"][0];
  // Loopback: post, two ways, memory, the atomic, completion; a swap and a compare-swap.
  const json operations = one["fabric_ops"]["nic"];
  EXPECT_EQ(operations["swap"], 400);
  EXPECT_EQ(operations["cas"], 400);
  const double least = one["latency_us"]["p25"].get<double>();
  const double most = one["latency_us"]["p99"].get<double>();
  EXPECT_GT(least, 0.5);
  EXPECT_LT(most, 1.2 * least) << "only jitter between them";
}

TEST(Simulated, TimeIsVirtual) {
  request r = simulated({"d-mcs"});
  r.ops = 0;
  r.seconds = 0.002;
  const json one = run(r)["runs"][0];
  EXPECT_NEAR(one["elapsed_s"].get<double>(), 0.002, 0.0001);
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// When each rank waited and held, in virtual time: so the trace is the same each time, and as long
// as the run.
TEST(Simulated, TracesInVirtualTime) {
  const std::string path = testing::TempDir() + "simulated_trace_" + std::to_string(getpid());
  request r = simulated({"rma-rw"});
  r.trace = path;
  const json one = run(r)["runs"][0];
  const std::string text = text_of(path);
  std::ignore = run(r);
  EXPECT_EQ(text_of(path), text);
  std::remove(path.c_str());

  double begun = 1e9;
  double ended = 0;
  std::size_t holds = 0;
  std::size_t fetch_adds = 0;
  const json events = json::parse(text)["traceEvents"];
  for (const json& event : events) {
    if (!event.contains("ts")) continue;
    begun = std::min(begun, event["ts"].get<double>());
    ended = std::max(ended, event["ts"].get<double>());
    const auto name = event["name"].get<std::string>();
    holds += event["ph"] == "B" && name.starts_with("hold") ? 1 : 0;
    fetch_adds += name == "fetch_add" ? 1 : 0;
  }
  EXPECT_EQ(holds, 400u);
  // The ranks' operations in the barrier at the end are traced too, but not counted.
  EXPECT_GE(fetch_adds, one["fabric_ops"]["nic"]["fetch_add"].get<std::size_t>());
  const double elapsed_us = one["elapsed_s"].get<double>() * 1e6;
  EXPECT_GE(ended - begun, elapsed_us - 0.01);
  EXPECT_LT(ended - begun, elapsed_us + 20);
}

TEST(Simulated, WithoutAWarmUpAllIsMeasured) {
  request r = simulated({"d-mcs"});
  r.writers = 1;
  const json with = run(r)["runs"][0];
  r.warm_up = false;
  const json without = run(r)["runs"][0];
  // The queue is empty when the run starts: none hands the lock over to the first.
  const auto handoffs = [](const json& of) {
    int sum = 0;
    for (const json& n : of["handoffs"]) sum += n.get<int>();
    return sum;
  };
  EXPECT_EQ(without["ops"], 400);
  EXPECT_LT(handoffs(without), 400);
  EXPECT_GE(with["elapsed_s"], without["elapsed_s"]);
}

TEST(Simulated, ARunThatTakesMoreEventsThanItMayIsEnded) {
  request r = simulated({"spin"});
  r.ops = 100'000;
  r.most_events = 50'000;
  EXPECT_THROW(std::ignore = run_simulated(r), sim::too_many_events);
  r.most_events = 50'000'000;
  EXPECT_EQ(run_simulated(r).at("ops"), 100'000);
}

// A caller that carries out several runs at a time learns the memory of each before it starts.
TEST(Simulated, ARunIsAdmittedBeforeItStarts) {
  double foreseen = 0;
  std::ignore =
      run_simulated(simulated({"d-mcs"}), nullptr, [&](double bytes) { foreseen = bytes; });
  EXPECT_GT(foreseen, 8 * 4096);
  struct no_more {};
  EXPECT_THROW(
      std::ignore = run_simulated(simulated({"d-mcs"}), nullptr, [](double) { throw no_more(); }),
      no_more);
}

// Every rank remembers what it read of the counter of each of 256 nodes.
TEST(Simulated, WhatALockRemembersIsForeseen) {
  struct no_more {};
  const auto foreseen = [](const char* lock) {
    request r = simulated({lock});
    r.procs = {4096};
    r.levels = "";
    double bytes = 0;
    EXPECT_THROW(std::ignore = run_simulated(r, nullptr,
                                             [&](double needed) {
                                               bytes = needed;
                                               throw no_more();
                                             }),
                 no_more);
    return bytes;
  };
  EXPECT_GT(foreseen("rma-rw") - foreseen("d-mcs"), 256.0 * 4096 * 48);
}

TEST(Simulated, MoreRanksThanAnyMachineHere) {
  request r = simulated({"rma-mcs"});
  r.procs = {2048};
  r.levels = "";
  r.ops = 4096;
  const json one = run(r)["runs"][0];
  EXPECT_EQ(one["levels"], "128x16");
  EXPECT_EQ(one["ops"], 4096);
}

TEST(Simulated, Refusals) {
  const std::string known =
      "cloudlab-cx3, cx5-100g, fx10, fx100, ndr-infiniband, osc-2005, piz-daint, scc, slingshot";
  EXPECT_EQ(refusal(simulated({"d-mcs"})), "");
  EXPECT_EQ(
      refusal(simulated({"d-mcs"}), [](request& r) { r.profile = ""; }),
      "--machine '' (accepted: a machine file, since --fabric sim needs one, or " + known + ")");
  EXPECT_EQ(refusal(simulated({"d-mcs"}), [](request& r) { r.profile = "/no/such"; }),
            "--machine '/no/such' (accepted: a machine file that can be read: No such file or "
            "directory; or " +
                known + ")");
  EXPECT_EQ(refusal(simulated({"d-mcs"}),
                    [](request& r) {
                      r.fabric = "shm";
                      r.profile = "m.toml";
                    }),
            "--machine 'm.toml' (accepted: with --fabric sim only, not with shm)");
  EXPECT_EQ(refusal(simulated({"d-mcs"}), [](request& r) { r.threads = true; }),
            "--threads '' (accepted: on shm; simulated ranks are neither)");
  EXPECT_EQ(refusal(simulated({"d-mcs"}), [](request& r) { r.locks = {"pthread-mutex"}; }),
            "--lock 'pthread-mutex' (accepted: on shm only, not on sim)");
  EXPECT_EQ(
      refusal(simulated({"d-mcs"}), [](request& r) { r.profile = profile("scc"), r.procs = {49}; }),
      "--procs '49' (accepted: 1 to 48)");
  EXPECT_EQ(refusal(simulated({"d-mcs"}), [](request& r) { r.procs = {34}, r.levels = "2x17"; }),
            "--levels '2x17' (accepted: at most 16 ranks on each of at most 5272 nodes: piz-daint "
            "has no more; these are 17 on 2)");
}

// A round trip of a far pair of nodes is longer than that of a near one.
TEST(Simulated, NodesAreThoseThatAreAskedFor) {
  const auto mean = [](const char* nodes) {
    request r = simulated({"all"}, "primitive");
    r.operation = "put";
    r.profile = profile("fx100");
    r.procs = {2};
    r.levels = "2x1";
    r.nodes = nodes;
    const json one = run(r)["runs"][0];
    EXPECT_EQ(one["nodes"].size(), 2);
    return one["latency_us"]["mean"].get<double>();
  };
  EXPECT_GT(mean("0,82943"), 1.3 * mean("0-1"));
  EXPECT_LT(mean("82942-82943"), 1.1 * mean("0-1"));
}

TEST(Simulated, RefusalsOfNodes) {
  const auto with = [](const char* nodes) {
    return refusal(simulated({"d-mcs"}), [&](request& r) {
      r.profile = profile("scc");
      r.procs = {4};
      r.levels = "4x1";
      r.nodes = nodes;
    });
  };
  const auto refused = [](const std::string& value, const std::string& why) {
    return "--nodes '" + value + "' (accepted: 4 different nodes of scc, 0 to 47, such as 0,2-5; " +
           why + ")";
  };
  EXPECT_EQ(with("0,6-8"), "");
  EXPECT_EQ(with("47,1,2,0"), "");
  EXPECT_EQ(with("0-4"), refused("0-4", "these are 5"));
  EXPECT_EQ(with("0-2,48"), refused("0-2,48", "there is no 48-48"));
  EXPECT_EQ(with("0-2,2"), refused("0-2,2", "2 is there twice"));
  EXPECT_EQ(with("3-0"), refused("3-0", "there is no 3-0"));
  EXPECT_EQ(with("0,,1,2"), refused("0,,1,2", "these are no numbers"));
  EXPECT_EQ(with("0,1,2,"), refused("0,1,2,", "these are no numbers"));
  EXPECT_EQ(with("0-1x"), refused("0-1x", "these are no numbers"));
  EXPECT_EQ(refusal(simulated({"d-mcs"}),
                    [](request& r) { r.fabric = "shm", r.profile = "", r.nodes = "0,1"; }),
            "--nodes '0,1' (accepted: with --fabric sim only, not with shm)");
}

request on_scc(std::vector<std::string> locks, const std::string& workload, int procs) {
  request r = simulated(std::move(locks), workload);
  r.profile = profile("scc");
  r.procs = {procs};
  r.levels = std::to_string(procs) + "x1";
  r.writers = 1;
  r.ops = 100;
  return r;
}

// An epoch without operations sends nothing, and costs what its two calls cost.
TEST(Simulated, AnEmptyEpochCostsItsCalls) {
  request r = on_scc({"msg-deferred"}, "mix", 4);
  r.machine_set = {{"library.acquire_ns", 700}, {"library.release_ns", 500}};
  const json one = run(r)["runs"][0];
  EXPECT_EQ(one["fabric_ops"]["messages"], 0);
  EXPECT_NEAR(one["latency_us"]["mean"].get<double>(), 1.2, 0.03);
  EXPECT_NEAR(one["acquire_us"].get<double>(), 0.7, 0.03);
}

TEST(Simulated, AnAccessOfACriticalSectionIsACall) {
  request r = on_scc({"fompi-rw"}, "dht-writer", 1);
  const auto p50 = [&](double access_ns) {
    r.machine_set = {{"library.access_ns", access_ns}};
    return run(r)["runs"][0]["latency_us"]["p50"].get<double>();
  };
  EXPECT_NEAR(p50(5000) - p50(0), 5, 1);
}

// The readers come when the writer has the lock, and not long before: then those of
// fompi-rw-backoff have not backed off for long, and their attempts slow down the writer.
TEST(Simulated, TheReadersOfAHashTableComeWhenTheWriterHasTheLock) {
  const auto p50 = [](int procs) {
    const json one = run(on_scc({"fompi-rw-backoff"}, "dht-writer", procs))["runs"][0];
    EXPECT_EQ(one["violations"], 0);
    return one["latency_us"]["p50"].get<double>();
  };
  EXPECT_GT(p50(12), 1.5 * p50(1));
}

// Its ranks share the work. Flags of all ranks at one of them are polled through one controller,
// which delays the work of those whose data is behind the same one, and so everyone.
TEST(Simulated, AStencilSlowsDownWhenItsFlagsLieAtOneRank) {
  const auto iteration = [](int procs, std::optional<std::uint64_t> flags_at) {
    request r = on_scc({"all"}, "stencil", procs);
    r.ops = 20 * static_cast<std::uint64_t>(procs);
    r.flags_at = flags_at;
    const json one = run(r)["runs"][0];
    EXPECT_EQ(one["ops"], r.ops);
    EXPECT_EQ(one.contains("flags_at"), flags_at.has_value());
    return one["latency_us"]["mean"].get<double>();
  };
  const double own = iteration(48, {});
  EXPECT_GT(iteration(1, {}), 20 * own);
  EXPECT_GT(iteration(48, 10), 1.3 * own);
}

// Ranks that end at a time have not done the same number of iterations.
TEST(Simulated, AStencilCanEndAtATime) {
  request r = on_scc({"all"}, "stencil", 5);
  r.ops = 0;
  r.seconds = 0.01;
  EXPECT_GT(run(r)["runs"][0]["ops"].get<std::uint64_t>(), 5u);
}

// A server that shares its processor with other processes falls behind; locks without a server do
// not.
TEST(Simulated, ALoadedServerFallsBehind) {
  const auto throughput = [](const char* lock, std::uint64_t load) {
    request r = simulated({lock}, "contention");
    r.profile = profile("osc-2005");
    r.machine_set = {{"cpu.slice_ns", 1e5}};
    r.procs = {2};
    r.levels = "2x1";
    r.writers = 1;
    r.ops = 3000;
    r.server_load = load;
    return run(r)["runs"][0]["throughput_ops_s"].get<double>();
  };
  const double alone = throughput("dlm-server", 0);
  EXPECT_NEAR(throughput("dlm-server", 1), alone, 0.02 * alone);  // there are two processors
  const double some = throughput("dlm-server", 3);
  EXPECT_LT(some, 0.8 * alone);
  EXPECT_LT(throughput("dlm-server", 7), 0.8 * some);
  EXPECT_NEAR(throughput("dq", 7), throughput("dq", 0), 1);
}

// Each card keeps 6 contexts of the 24 that the run needs. A run of two operations a rank would not
// get to need them.
TEST(Simulated, ConnectionsOfATableAreInUseFromTheStart) {
  const auto mean = [](std::uint64_t ops) {
    request r = simulated({"spin"}, "table");
    r.writers = 1;
    r.locality = 0;
    r.ops = ops;
    r.warm_up = false;
    r.machine_set = {{"nic.connections", 6}, {"nic.connection_miss_ns", 20'000}, {"jitter", 0}};
    return run(r)["runs"][0]["latency_us"]["mean"].get<double>();
  };
  EXPECT_GT(mean(16), 0.8 * mean(4000));
}

// A spinlock is released by one put, also if ranks wait; acquires take more operations.
TEST(Simulated, TheMostOperationsOfARelease) {
  const auto most = [](int ranks) {
    request r = simulated({"spin"}, "contention");
    r.procs = {ranks};
    r.levels = std::to_string(ranks) + "x1";
    r.writers = 1;
    return run(r)["runs"][0]["release_network_ops_max"].get<int>();
  };
  EXPECT_EQ(most(2), 1);
  EXPECT_EQ(most(5), 1);
  EXPECT_FALSE(run(simulated({"spin"}))["runs"][0].contains("release_network_ops_max"));
}

// Think time lies between operations, call time is part of their latency.
TEST(Simulated, WhatAProgramDoesAroundItsLocks) {
  const auto ran = [](double think_us, double call_us) {
    request r = simulated({"d-mcs"}, "table");
    r.procs = {1};
    r.levels = "1x1";
    r.writers = 1;
    r.ops = 2000;
    r.table_size = 1;
    r.machine_set = {{"jitter", 0}};
    r.think_us = think_us;
    r.call_us = call_us;
    return run(r)["runs"][0];
  };
  const auto latency = [](const json& of) { return of["latency_us"]["mean"].get<double>(); };
  const auto each = [](const json& of) { return 1e6 / of["throughput_ops_s"].get<double>(); };
  const json plain = ran(0, 0);
  const json thinks = ran(3, 0);
  const json calls = ran(0, 2);
  EXPECT_FALSE(plain.contains("think_us") || plain.contains("call_us"));
  EXPECT_EQ(thinks["think_us"], 3);
  EXPECT_EQ(calls["call_us"], 2);
  EXPECT_NEAR(latency(thinks), latency(plain), 0.01);
  EXPECT_NEAR(each(thinks), each(plain) + 3, 0.01);
  EXPECT_NEAR(latency(calls), latency(plain) + 2, 0.01);
  EXPECT_NEAR(each(calls), each(plain) + 2, 0.01);
}

TEST(Simulated, RefusalsOfAServersLoad) {
  const auto with = [](const char* machine, const char* workload, std::uint64_t load) {
    return refusal(simulated({"d-mcs"}), [&](request& r) {
      r.profile = profile(machine);
      r.workload = workload;
      r.levels = "4x2";
      r.server_load = load;
    });
  };
  EXPECT_EQ(with("osc-2005", "contention", 1000), "");
  EXPECT_EQ(with("osc-2005", "contention", 1001),
            "--server-load '1001' (accepted: a whole number from 0 to 1000)");
  EXPECT_EQ(with("osc-2005", "table", 1),
            "--server-load '1' (accepted: with --workload contention only, not with table)");
  EXPECT_EQ(
      with("piz-daint", "contention", 1),
      "--server-load '1' (accepted: on a machine with cpu.slice_ns, which piz-daint has not)");
  EXPECT_EQ(refusal(simulated({"d-mcs"}),
                    [](request& r) {
                      r.fabric = "shm", r.profile = "", r.workload = "contention",
                      r.server_load = 1;
                    }),
            "--server-load '1' (accepted: with --fabric sim only, not with shm)");
}

// A million ranks, each with a handle of 100,000 locks.
TEST(Simulated, MemoryThatIsNotThereIsForeseen) {
  const std::string why = refusal(simulated({"d-mcs"}), [](request& r) {
    r.profile = profile("fx100");
    r.procs = {1 << 20};
    r.levels = "";
    r.workload = "table";
    r.table_size = 100'000;
  });
  EXPECT_EQ(why.find("--procs '1048576' (accepted: what fits into memory: d-mcs needs about 37"),
            0u)
      << why;
}

TEST(Simulated, ABrokenMachineFileIsRefusedWithItsLine) {
  const std::string path = testing::TempDir() + "broken.toml";
  std::ofstream(path) << "name = \"broken\"\nwhat = \"nothing\"\njitter = 0\n[node]\ncores = -4\n";
  EXPECT_EQ(refusal(simulated({"d-mcs"}), [&](request& r) { r.profile = path; }),
            "--machine " + path + ":5: node.cores '-4' (accepted: a whole number, 1 to 1000)");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace lockflight::bench
