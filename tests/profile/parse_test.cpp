// Profiles: reading, writing, and errors with the file, the line and the key.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/all.hpp"
#include "lockflight/mutex.hpp"
#include "lockflight/profile.hpp"
#include "tests/support/damaged.hpp"

namespace lockflight {
namespace {

const std::string good = R"(# found by hand
format = 1

[rma-rw]
fabric = "sim"
machine = "piz-daint"
procs = 64
levels = "4x16"
workload = "ecsb"
writers = 0.25
objective = "throughput"
gain = 1.5
[rma-rw.parameters]
T_R = 4000
T_L2 = 0

[flight.parameters]
barge = 8
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = good;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string complaint(const std::string& text) {
  try {
    static_cast<void>(profile::parse(text, "p.toml"));
  } catch (const bad_profile& e) {
    return e.what();
  }
  return "none";
}

TEST(Profile, IsRead) {
  const profile p = profile::parse(good, "p.toml");
  EXPECT_EQ(p.locks().size(), 2u);
  const profile::entry& rw = p.locks().at("rma-rw");
  EXPECT_EQ(rw.found.fabric, "sim");
  EXPECT_EQ(rw.found.machine, "piz-daint");
  EXPECT_EQ(rw.found.procs, 64);
  EXPECT_EQ(rw.found.levels, "4x16");
  EXPECT_EQ(rw.found.workload, "ecsb");
  EXPECT_EQ(rw.found.writers, 0.25);
  EXPECT_EQ(rw.found.objective, "throughput");
  EXPECT_EQ(rw.found.gain, 1.5);
  const std::map<std::string, std::int64_t> values{{"T_L2", 0}, {"T_R", 4000}};
  EXPECT_EQ(rw.parameters, values);
  EXPECT_EQ(p.values_of("rma-rw"), values);
  EXPECT_TRUE(p.values_of("rma-mcs").empty());
  EXPECT_TRUE(p.locks().at("flight").found.fabric.empty());
}

TEST(Profile, WhatItDoesNotNameHasItsDefault) {
  const profile p = profile::parse(good, "p.toml");
  const auto rw = p.parameters_of<lock::rma_rw<shm::port>>();
  EXPECT_EQ(rw.t_r, 4000);
  EXPECT_EQ(rw.t_l[1], 0);
  EXPECT_EQ(rw.t_l[0], lock::rma_rw_parameters{}.t_l[0]);
  EXPECT_EQ(rw.t_dc, lock::rma_rw_parameters{}.t_dc);
  const auto mutex = p.parameters_of<lock::rma_mcs<shm::port>>();
  EXPECT_EQ(mutex.t_l[1], lock::rma_mcs_parameters{}.t_l[1]);
  static_cast<void>(p.parameters_of<lock::spin<shm::port>>());
  static_cast<void>(p.parameters_of<lockflight::mutex<shm::port>>());
}

// Every parameter of every lock, at both ends of its range and beyond.
TEST(Profile, KnowsEveryParameterOfEveryLock) {
  lock::all::for_each([&]<template <class> class Lock>(lock::family<Lock>) {
    using known = Lock<shm::port>;
    for (const auto& each : known::parameters::all()) {
      const auto text = [&](std::int64_t value) {
        return "format = 1\n[" + std::string(known::about.name) + ".parameters]\n" +
               std::string(each.name) + " = " + std::to_string(value) + "\n";
      };
      for (const std::int64_t value : {each.min, each.max}) {
        const profile p = profile::parse(text(value), "p.toml");
        auto chosen = p.parameters_of<known>();
        EXPECT_EQ(each.of(chosen), value) << known::about.name << ' ' << each.name;
      }
      for (const std::int64_t value : {each.min - 1, each.max + 1}) {
        const std::string said = complaint(text(value));
        EXPECT_EQ(said, "p.toml:3: " + std::string(known::about.name) + ".parameters." +
                            std::string(each.name) + " '" + std::to_string(value) +
                            "' (accepted: a whole number, " + std::to_string(each.min) + " to " +
                            std::to_string(each.max) + ")");
      }
    }
  });
}

TEST(Profile, RefusalsNameTheLineTheKeyAndWhatIsAccepted) {
  const struct {
    std::string from, to, says;
  } cases[] = {
      {"format = 1\n", "", "format is missing (accepted: 1)"},
      {"format = 1", "format = 2", "p.toml:2: format '2' (accepted: a whole number, 1 to 1)"},
      {"format = 1", "format = \"1\"", "p.toml:2: format '1' (accepted"},
      {"[rma-rw]", "[rma-wr]", "unknown key 'rma-wr' (accepted: alock, "},
      {"[flight.parameters]\nbarge = 8", "[spin.parameters]", "unknown key 'spin' (accepted: "},
      {"[flight.parameters]\nbarge = 8", "flight = 8",
       "p.toml:17: unknown key 'rma-rw.parameters.flight' (accepted: T_DC, "},
      {"format = 1", "format = 1\nalock = 8", "p.toml:3: alock '8' (accepted: a table)"},
      {"[flight.parameters]", "[flight]", "p.toml:17: flight.parameters is missing"},
      {"[flight.parameters]\nbarge = 8", "[flight]\nparameters = 3",
       "p.toml:18: flight.parameters '3' (accepted: a table)"},
      {"[flight.parameters]\nbarge = 8", "[flight]\n",
       "p.toml:17: flight.parameters is missing (accepted: a table of parameters)"},
      {"barge = 8", "bargain = 8",
       "p.toml:18: unknown key 'flight.parameters.bargain' (accepted: barge, handovers, "
       "local_budget, one_line, patience, remote_budget)"},
      {"T_R = 4000", "T_R = 0",
       "p.toml:14: rma-rw.parameters.T_R '0' (accepted: a whole number, 1"},
      {"T_R = 4000", "T_R = 4.5", "p.toml:14: rma-rw.parameters.T_R '4.5' (accepted: a whole"},
      {"T_R = 4000", "T_R = 4.0", "p.toml:14: rma-rw.parameters.T_R '4.0' (accepted: a whole"},
      {"T_R = 4000", "T_R = \"many\"", "p.toml:14: rma-rw.parameters.T_R 'many' (accepted: a"},
      {"T_R = 4000", "T_R = [4000]", "p.toml:14: rma-rw.parameters.T_R '[ 4000 ]' (accepted: a"},
      {"T_R = 4000", "T_R = 99999999999999999999", "p.toml:14: "},
      {"T_R = 4000", "T_R = 4000\nT_R = 5", "p.toml:15: "},
      {"procs = 64", "procs = 0", "p.toml:7: rma-rw.procs '0' (accepted: a whole number, 1 to"},
      {"writers = 0.25", "writers = 1.25", "p.toml:10: rma-rw.writers '1.25' (accepted: a number"},
      {"writers = 0.25", "writers = nan", "p.toml:10: rma-rw.writers 'nan' (accepted: a number"},
      {"gain = 1.5", "gain = -1", "p.toml:12: rma-rw.gain '-1' (accepted: a number, at least 0)"},
      {"gain = 1.5", "gain = true", "p.toml:12: rma-rw.gain 'true' (accepted: a number"},
      {"fabric = \"sim\"", "fabric = 3",
       "p.toml:5: rma-rw.fabric '3' (accepted: a string that is not empty)"},
      {"fabric = \"sim\"", "colour = \"red\"",
       "p.toml:5: unknown key 'rma-rw.colour' (accepted: fabric, gain, levels, machine, "},
      {"fabric = \"sim\"", "\"a\\nb\" = 1", "unknown key 'rma-rw.a b'"},
      {"[rma-rw]", "[rma-rw", "p.toml:4: "},
  };
  for (const auto& each : cases) {
    const std::string said = complaint(with(each.from, each.to));
    EXPECT_NE(said.find(each.says), std::string::npos) << said << "\nexpected: " << each.says;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

TEST(Profile, WhatIsWrittenIsReadAgain) {
  const profile p = profile::parse(good, "p.toml");
  EXPECT_EQ(profile::parse(p.text(), "again").text(), p.text());
  EXPECT_NE(p.text().find("[rma-rw.parameters]\nT_L2 = 0\nT_R = 4000\n"), std::string::npos);
  EXPECT_NE(p.text().find("writers = 0.25\n"), std::string::npos);
  EXPECT_EQ(profile().text(), "format = 1\n");
  EXPECT_TRUE(profile::parse("format = 1\n", "p").locks().empty());

  const std::string odd = "a \"b\\c\"\td\x7f\n";
  const profile named({{"flight", {.found = {.machine = odd}, .parameters = {}}}});
  EXPECT_EQ(profile::parse(named.text(), "p").locks().at("flight").found.machine, odd);
}

TEST(Profile, FilesAndTheEnvironment) {
  const auto refused = [](const std::string& path, const std::string& says) {
    try {
      static_cast<void>(profile::read(path));
      ADD_FAILURE() << path << " was read";
    } catch (const bad_profile& e) {
      EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
    }
  };
  refused("/nowhere/p.toml", "'/nowhere/p.toml' (accepted: a profile that can be read: No such");
  refused("/", "'/' (accepted: a profile that can be read: ");

  const std::string path = ::testing::TempDir() + "lockflight_profile_test.toml";
  std::ofstream(path) << good;
  EXPECT_EQ(profile::read(path).values_of("flight").at("barge"), 8);
  ASSERT_EQ(setenv("LOCKFLIGHT_PROFILE", path.c_str(), 1), 0);
  EXPECT_EQ(profile::from_environment().locks().size(), 2u);
  std::ofstream(path) << with("barge", "large");
  refused(path, path + ":18: unknown key 'flight.parameters.large'");
  EXPECT_THROW(static_cast<void>(profile::from_environment()), bad_profile);
  ASSERT_EQ(setenv("LOCKFLIGHT_PROFILE", "", 1), 0);
  EXPECT_TRUE(profile::from_environment().locks().empty());
  ASSERT_EQ(unsetenv("LOCKFLIGHT_PROFILE"), 0);
  EXPECT_TRUE(profile::from_environment().locks().empty());
  std::remove(path.c_str());
}

// Any file is read or refused.
TEST(Profile, NothingElseComesOutOfBrokenFiles) {
  std::minstd_rand random(1);
  int refused = 0;
  for (int i = 0; i < 5'000; ++i) {
    refused += complaint(test::damaged(good, random)) != "none" ? 1 : 0;
  }
  EXPECT_GT(refused, 2'000);
}

}  // namespace
}  // namespace lockflight
