// The requests that are refused, with their errors; and the meaning of parameters and levels.
#include "lab/bench/plan/request.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "lockflight/baseline/pthread.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/all.hpp"
#include "refusals.hpp"

namespace lockflight::bench {
namespace {

request good() {
  request r;
  r.locks = {"rma-rw"};
  r.procs = {4};
  r.levels = "2x2";
  return r;
}

TEST(Request, GoodOnesPass) {
  EXPECT_EQ(refusal(good()), "");
  EXPECT_EQ(refusal(good(), [](request& r) { r.set = {{"T_DC", 2}, {"T_L2", 0}}; }), "");
  EXPECT_EQ(refusal(good(), [](request& r) { r.writers = 1, r.by = role::process; }), "");
  EXPECT_EQ(refusal(good(), [](request& r) { r.levels = "", r.procs = {1, 2, 8}; }), "");
  EXPECT_EQ(refusal(good(), [](request& r) { r.locks = {"all"}, r.workload = "dht"; }), "");
  EXPECT_EQ(refusal(good(), [](request& r) { r.locks = {"fompi-a"}, r.workload = "dht"; }), "");
  EXPECT_EQ(refusal(good(), [](request& r) { r.ops = 1, r.seconds = 0; }), "");
}

TEST(Request, WhatOnlySomeWorkloadsUnderstand) {
  const auto with = [](const char* workload, auto change) {
    return refusal(good(), [&](request& r) {
      r.workload = workload;
      change(r);
    });
  };
  EXPECT_EQ(with("table", [](request& r) { r.table_size = 100'000, r.locality = 0; }), "");
  EXPECT_EQ(with("table", [](request& r) { r.think_us = 0.5, r.call_us = 0; }), "");
  EXPECT_EQ(with("contention", [](request& r) { r.table_size = 3, r.hold_us = 270; }), "");
  EXPECT_EQ(with("dht-writer", [](request& r) { r.bytes = 1; }), "");
  EXPECT_EQ(with("stencil", [](request& r) { r.locks = {"all"}, r.flags_at = 3; }), "");
  EXPECT_EQ(with("stencil", [](request& r) { r.locks = {"all"}, r.flags_at = 4; }),
            "--flags-at '4' (accepted: a rank, 0 to 3)");
  EXPECT_EQ(with("stencil", [](request& r) { r.locks = {"d-mcs"}; }),
            "--lock 'd-mcs' (accepted: with another --workload than stencil, which takes no lock)");
  EXPECT_EQ(with("mix", [](request& r) { r.flags_at = 0; }),
            "--flags-at '0' (accepted: with --workload stencil only, not with mix)");
  EXPECT_EQ(with("sob", [](request& r) { r.sample = 64; }), "");
  EXPECT_EQ(with("lb", [](request& r) { r.sample = 64; }),
            "--sample '64' (accepted: with --workload ecsb or sob only, not with lb)");
  EXPECT_EQ(with("ecsb", [](request& r) { r.sample = 0; }),
            "--sample '0' (accepted: a whole number from 1 to 1000)");
  EXPECT_EQ(
      with("ecsb", [](request& r) { r.table_size = 3; }),
      "--locks '3' (accepted: with --workload table, contention or zipf only, not with ecsb)");
  EXPECT_EQ(with("mix", [](request& r) { r.locality = 1; }),
            "--locality '1' (accepted: with --workload table only, not with mix)");
  EXPECT_EQ(with("table", [](request& r) { r.hold_us = 1; }),
            "--hold '1' (accepted: with --workload contention only, not with table)");
  EXPECT_EQ(with("ecsb", [](request& r) { r.think_us = 1; }),
            "--think '1' (accepted: with --workload table only, not with ecsb)");
  EXPECT_EQ(with("contention", [](request& r) { r.call_us = 1; }),
            "--call '1' (accepted: with --workload table only, not with contention)");
  EXPECT_EQ(with("table", [](request& r) { r.think_us = 2e6; }),
            "--think '2000000' (accepted: a number from 0 to 1000000)");
  EXPECT_EQ(with("table", [](request& r) { r.call_us = -1; }),
            "--call '-1' (accepted: a number from 0 to 1000000)");
  EXPECT_EQ(with("table", [](request& r) { r.server_busy = true; }),
            "--server-busy '' (accepted: with --workload contention only, not with table)");
  EXPECT_EQ(with("ecsb", [](request& r) { r.witness = true; }),
            "--witness '' (accepted: with --fabric mpi, ucx, libfabric, oshmem only; on shm the "
            "usual check sees all ranks)");
  EXPECT_EQ(with("dht", [](request& r) { r.bytes = 1; }),
            "--bytes '1' (accepted: with --workload dht-writer only, not with dht)");
  EXPECT_EQ(with("table", [](request& r) { r.table_size = 0; }),
            "--locks '0' (accepted: a whole number from 1 to 100000)");
  EXPECT_EQ(with("table", [](request& r) { r.locality = 1.5; }),
            "--locality '1.5' (accepted: a number from 0 to 1)");
  EXPECT_EQ(
      with("table", [](request& r) { r.locality = 0.5, r.levels = "4"; }),
      "--locality '0.5' (accepted: 1: the machine with 4 ranks is one node; --levels 2x2 makes "
      "two)");
  EXPECT_EQ(with("zipf", [](request& r) { r.table_size = 3, r.skew = 0; }), "");
  EXPECT_EQ(with("table", [](request& r) { r.skew = 1; }),
            "--skew '1' (accepted: with --workload zipf only, not with table)");
  EXPECT_EQ(with("zipf", [](request& r) { r.skew = -1; }),
            "--skew '-1' (accepted: a number from 0 to 5)");
  EXPECT_EQ(with("zipf", [](request& r) { r.hold_us = 1; }),
            "--hold '1' (accepted: with --workload contention only, not with zipf)");
  EXPECT_EQ(with("contention", [](request& r) { r.hold_us = -1; }),
            "--hold '-1' (accepted: a number from 0 to 1000000)");
  EXPECT_EQ(with("dht-writer", [](request& r) { r.bytes = 65'537; }),
            "--bytes '65537' (accepted: a whole number from 1 to 65536)");
  EXPECT_EQ(with("cascade", [](request& r) { r.levels = "", r.procs = {1}; }),
            "--procs '1' (accepted: at least 2 with --workload cascade)");
}

TEST(Request, SweepsTakeValuesThatTheLockTakes) {
  const auto sweep = [](const char* name, std::vector<double> values) {
    return refusal(good(), [&](request& r) { r.sweep = name, r.sweep_values = std::move(values); });
  };
  EXPECT_EQ(sweep("T_R", {1, 10, 100}), "");
  EXPECT_EQ(sweep("T_R", {10, 0}).find("--sweep 'T_R=0' (accepted: "), 0u);
  EXPECT_EQ(sweep("T_Q", {1}).find("--sweep 'T_Q' (nearest: T_R; accepted: writers, locks, "), 0u);
  EXPECT_EQ(refusal(good(),
                    [](request& r) {
                      r.set = {{"T_R", 5}};
                      r.sweep = "T_R", r.sweep_values = {7};
                    }),
            "--sweep 'T_R' (accepted: a parameter that --set does not give)");
}

TEST(Request, SettingsAreSweptWhereTheWorkloadHasThem) {
  const auto sweep = [](const char* workload, const char* name, std::vector<double> values) {
    return refusal(good(), [&](request& r) {
      r.workload = workload, r.sweep = name, r.sweep_values = std::move(values);
    });
  };
  EXPECT_EQ(sweep("ecsb", "writers", {0, 0.5, 1}), "");
  EXPECT_EQ(sweep("contention", "hold", {0, 270}), "");
  EXPECT_EQ(sweep("ecsb", "writers", {0, 1.5}), "--writers '1.5' (accepted: a number from 0 to 1)");
  EXPECT_EQ(
      sweep("ecsb", "locks", {3}),
      "--locks '3' (accepted: with --workload table, contention or zipf only, not with ecsb)");
}

TEST(Request, UnknownNamesComeWithTheNearest) {
  EXPECT_EQ(refusal(good(), [](request& r) { r.locks = {"rma-wr"}; })
                .find("--lock 'rma-wr' (nearest: rma-rw; accepted: spin, "),
            0u);
  EXPECT_EQ(refusal(good(),
                    [](request& r) {
                      r.locks = {"d-mcs", "zzzzzzz"};
                    })
                .find("--lock 'zzzzzzz' (accepted: "),
            0u);
  EXPECT_EQ(refusal(good(), [](request& r) { r.workload = "ecbs"; })
                .find("--workload 'ecbs' (nearest: ecsb; accepted: lb, "),
            0u);
  EXPECT_EQ(refusal(good(), [](request& r) { r.fabric = "mpi"; }),
            "--fabric 'mpi' (accepted: in this build shm, sim; mpi is in build/openmpi/lockflight "
            "and build/mpich/lockflight)");
  EXPECT_EQ(refusal(good(), [](request& r) { r.fabric = "smi"; }),
            "--fabric 'smi' (accepted: in this build shm, sim; with their libraries also mpi, ucx, "
            "libfabric, oshmem)");
  EXPECT_EQ(refusal(good(), [](request& r) { r.waiting = "sleep"; }),
            "--waiting 'sleep' (accepted: auto, spin, yield, park)");
}

TEST(Request, NoLockIsForTheHashTableOnly) {
  EXPECT_EQ(refusal(good(), [](request& r) { r.locks = {"fompi-a"}; }),
            "--lock 'fompi-a' (accepted: with --workload dht only, since it is no lock)");
}

TEST(Request, WhatADeferringLockCannotDo) {
  EXPECT_EQ(refusal(good(), [](request& r) { r.locks = {"msg-deferred"}, r.workload = "sob"; }),
            "");
  EXPECT_EQ(
      refusal(good(), [](request& r) { r.locks = {"msg-deferred"}, r.workload = "wcsb"; }),
      "--lock 'msg-deferred' (accepted: with --workload lb, ecsb, sob, warb, table, mix: what "
      "is done under it is done at the release)");
}

// A lock as its paper prints it is for simulated runs that name it, and in no list.
TEST(Request, ALockAsPrintedRunsOnTheSimulatorOnly) {
  for (const char* const name :
       {"rma-rw-listing", "mcs-rw-wp-listing", "alock-listing", "mcs-listing"}) {
    EXPECT_EQ(refusal(good(), [&](request& r) { r.locks = {name}; }),
              "--lock '" + std::string(name) +
                  "' (accepted: with --fabric sim, in claims of reproduce, and in check; it is a "
                  "lock as its paper prints it, and not for shm)");
    EXPECT_EQ(
        refusal(good(),
                [&](request& r) { r.locks = {name}, r.fabric = "sim", r.profile = "piz-daint"; }),
        "");
  }
  EXPECT_EQ(refusal(good(), [](request& r) { r.locks = {"alock-listin"}; }).find("-listing"),
            std::string::npos)
      << "it is not offered where it cannot run";
  request all = good();
  all.locks = {"all"}, all.fabric = "sim", all.profile = "piz-daint";
  for (const job& one : jobs_of(all)) EXPECT_FALSE(one.lock->about.as_printed);
  for (const lock_row& row : lock_table()) EXPECT_FALSE(row.about.as_printed) << row.about.name;
}

TEST(Request, NumbersOutOfRange) {
  EXPECT_EQ(refusal(good(), [](request& r) { r.procs = {0}; }),
            "--procs '0' (accepted: whole numbers from 1 to 4096, joined by commas)");
  EXPECT_EQ(refusal(good(),
                    [](request& r) {
                      r.procs = {2, 4097};
                    }),
            "--procs '2,4097' (accepted: whole numbers from 1 to 4096, joined by commas)");
  EXPECT_NE(refusal(good(), [](request& r) { r.procs = {}; }), "");
  EXPECT_NE(refusal(good(), [](request& r) { r.locks = {}; }), "");
  EXPECT_EQ(refusal(good(), [](request& r) { r.writers = 1.5; }),
            "--writers '1.5' (accepted: a number from 0 to 1)");
  EXPECT_NE(refusal(good(), [](request& r) { r.writers = -0.1; }), "");
  EXPECT_NE(refusal(good(), [](request& r) { r.writers = std::nan(""); }), "");
  EXPECT_EQ(refusal(good(), [](request& r) { r.seconds = 0; }).find("--seconds '0' (accepted: "),
            0u);
  EXPECT_NE(refusal(good(), [](request& r) { r.seconds = -1; }), "");
  EXPECT_NE(refusal(good(), [](request& r) { r.seconds = std::nan(""); }), "");
}

TEST(Request, LevelsMustFit) {
  EXPECT_EQ(refusal(good(),
                    [](request& r) {
                      r.procs = {4, 8};
                    }),
            "--levels '2x2' (accepted: levels that multiply to --procs 8; these make 4)");
  EXPECT_EQ(
      refusal(good(), [](request& r) { r.levels = "2xtwo"; }),
      "--levels '2xtwo' (accepted: positive numbers joined by x, such as 2x4, that multiply to "
      "at most 4096)");
  EXPECT_NE(refusal(good(), [](request& r) { r.levels = "1x1x1x2x2"; }), "");
  EXPECT_EQ(refusal(good(), [](request& r) { r.node_level = 3; }),
            "--node-level '3' (accepted: 1 to 2, the machine's levels)");
}

TEST(Request, ParametersMustExistAndBeInRange) {
  EXPECT_EQ(refusal(good(),
                    [](request& r) {
                      r.set = {{"T_R", 0}};
                    }),
            "--set 'T_R=0' (accepted: 1 to 1099511627776 for rma-rw)");
  EXPECT_EQ(refusal(good(),
                    [](request& r) {
                      r.set = {{"T_CD", 1}};
                    })
                .find("--set 'T_CD' (nearest: T_DC; accepted: T_DC, T_R, "),
            0u);
  EXPECT_EQ(
      refusal(good(),
              [](request& r) {
                r.set = {{"T_L3", 4}};
              }),
      "--set 'T_L3=4' (accepted: a level from 1 to 2, the machine with 4 ranks has no other)");
  EXPECT_NE(refusal(good(), [](request& r) { r.locks = {"d-mcs"}, r.set = {{"T_R", 4}}; }), "");
  EXPECT_EQ(refusal(good(),
                    [](request& r) {
                      r.locks = {"d-mcs", "rma-rw"}, r.set = {{"T_R", 4}};
                    }),
            "");
}

TEST(Request, NoMoreRanksThanALockCanTellApart) {
  const auto crowd = [](int procs) {
    return [procs](request& r) {
      r.locks = {"d-mcs", "dq-fair"}, r.set = {{"counter_bits", 3}};
      r.levels = "", r.procs = {procs};
    };
  };
  EXPECT_EQ(refusal(good(), crowd(8)), "");
  EXPECT_EQ(refusal(good(), crowd(9)),
            "--procs '9' (accepted: 1 to 8 for dq-fair with these parameters)");
}

TEST(Request, ATraceIsOfOneRun) {
  EXPECT_NE(refusal(good(), [](request& r) { r.trace = "t.json", r.locks = {"all"}; }), "");
  EXPECT_EQ(refusal(good(), [](request& r) { r.trace = "t.json"; }), "");
}

TEST(Request, BecomesEveryLockAtEveryNumberOfRanks) {
  request r = good();
  r.locks = {"spin", "d-mcs", "spin"};
  r.procs = {1, 2};
  r.levels = "";
  const auto jobs = jobs_of(r);
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_EQ(jobs[0].lock->about.name, "spin");
  EXPECT_EQ(jobs[1].plan.machine.ranks(), 2);
  EXPECT_EQ(jobs[2].lock->about.name, "d-mcs");
}

TEST(Machine, NodeLevelIsHonoured) {
  request r = good();
  EXPECT_EQ(machine_of(r, 4).nodes(), 2);
  r.node_level = 1;
  EXPECT_EQ(machine_of(r, 4).nodes(), 1);
  EXPECT_EQ(machine_of(r, 4).levels(), 2);
}

TEST(Levels, AsASpec) {
  EXPECT_EQ(levels_of(rma::topology::flat(8)), "8");
  EXPECT_EQ(levels_of(rma::topology::balanced({2, 4})), "2x4");
  EXPECT_EQ(levels_of(rma::topology::balanced({3, 1, 2})), "3x1x2");
  EXPECT_EQ(levels_of(rma::topology({{0, 0, 0}, {0, 0, 1}}, 1)), "irregular");
}

TEST(LockTable, IsTheListOfLocksAndTheBaselines) {
  std::vector<std::string> names;
  lock::all::for_each([&]<class Family>(Family) {
    names.emplace_back(Family::template on<shm::port>::about.name);
  });
  names.emplace_back(baseline::pthread_mutex<shm::port>::about.name);
  names.emplace_back(baseline::pthread_rwlock<shm::port>::about.name);
  std::vector<std::string> listed;
  for (const lock_row& row : lock_table()) {
    if (!row.about.defers) listed.emplace_back(row.about.name);  // no lock like the others
    const bool is_baseline = row.about.name.starts_with("pthread");
    EXPECT_EQ(row.fabrics, is_baseline ? std::vector<std::string>{"shm"}
                                       : (std::vector<std::string>{"shm", "sim"}));
    for (const catalogue::parameter_row& p : row.parameters) {
      EXPECT_LE(p.min, p.default_value) << row.about.name << ' ' << p.name;
      EXPECT_LE(p.default_value, p.max) << row.about.name << ' ' << p.name;
    }
  }
  EXPECT_EQ(listed, names);
}

}  // namespace
}  // namespace lockflight::bench
