// Each metric from a run whose numbers are known.
#include "reproduce/metric.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockflight::reproduce {
namespace {

nlohmann::json a_run() {
  return nlohmann::json::parse(R"({
    "procs": 5, "ops": 100, "elapsed_s": 2.0, "throughput_ops_s": 50.0,
    "latency_us": {"mean": 8.0, "p25": 2.0, "p50": 4.0, "p75": 6.0, "p99": 9.0},
    "acquire_us": 5.0, "release_us": 3.0,
    "rank_elapsed_s": {"fastest": 0.5, "mean": 1.0, "slowest": 2.0, "near": 0.8, "far": 1.2},
    "fabric_ops": {"nic": {"put": 10, "get": 20, "add": 30, "fetch_add": 40, "swap": 50, "cas": 60,
                           "flush": 1000, "loopback": 9}, "messages": 400}})");
}

TEST(Metric, EachIsWhatItsNameSays) {
  const nlohmann::json run = a_run();
  const std::pair<const char*, double> expected[] = {
      {"throughput", 50},
      {"mean latency", 8e-6},
      {"p25", 2e-6},
      {"p50", 4e-6},
      {"p75", 6e-6},
      {"p99", 9e-6},
      {"mean acquire", 5e-6},
      {"mean release", 3e-6},
      {"elapsed", 2},
      {"elapsed per round", 0.1},
      {"mean latency per other rank", 2e-6},
      {"network operations per operation", 2.1},
      {"messages per operation", 4},
      {"p75 / p25", 6e-6},
      {"slowest rank / fastest rank", 4},
      {"mean time of the farthest quarter of ranks / nearest quarter", 1.5},
  };
  EXPECT_EQ(names_of_metrics().size(), std::size(expected));
  for (const auto& [name, value] : expected) {
    const auto got = metric_of(run, name);
    ASSERT_TRUE(got) << name;
    EXPECT_DOUBLE_EQ(*got, value) << name;
  }
  EXPECT_DOUBLE_EQ(*metric_of(run, "p75 / p25", true), 2e-6);
}

TEST(Metric, ARunWithoutItHasNone) {
  nlohmann::json run = a_run();
  run["latency_us"]["p50"] = nullptr;
  run["acquire_us"] = nullptr;
  run["ops"] = 0;
  for (const char* const name :
       {"p50", "mean acquire", "elapsed per round", "network operations per operation"})
    EXPECT_FALSE(metric_of(run, name)) << name;
}

TEST(Metric, AUnitIsOfAMetric) {
  EXPECT_TRUE(fits("p50", "us"));
  EXPECT_TRUE(fits("elapsed", "s"));
  EXPECT_TRUE(fits("messages per operation", "messages"));
  EXPECT_FALSE(fits("p50", "x"));
  EXPECT_FALSE(fits("throughput", "us"));
}

}  // namespace
}  // namespace lockflight::reproduce
