// Each metric from a run whose numbers are known.
#include "lab/reproduce/metric.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockflight::reproduce {
namespace {

nlohmann::json a_run() {
  return nlohmann::json::parse(R"({
    "procs": 5, "ops": 100, "elapsed_s": 2.0, "throughput_ops_s": 50.0,
    "latency_us": {"mean": 8.0, "p25": 2.0, "p50": 4.0, "p75": 6.0, "p99": 9.0, "deviation": 2.0},
    "rank_latency_us": {"mean": 7.9, "p25": 7.0, "p50": 7.5, "p75": 8.5, "p99": 11.0, "max": 12.0},
    "read": {"latency_us": {"mean": 3.0}}, "write": {"latency_us": {"mean": 13.0}},
    "remote": {"latency_us": {"mean": 21.0}}, "release_network_ops_max": 2,
    "max_wait_us": 40.0,
    "latency_cdf": [[1.0, 0.5], [9.0, 1.0]], "rank_latency_cdf": [[7.0, 0.25], [12.0, 1.0]],
    "acquire_us": 6.0, "release_us": 3.0, "acquire_sd_us": 1.5, "release_sd_us": 0.5,
    "compare_swaps": {"posted": 80, "failed": 20}, "server": {"on_messages": 0.75, "on_atomics": 0.125},
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
      {"standard deviation", 2e-6},
      {"standard deviation / mean", 0.25},
      {"p25 of the ranks' means", 7e-6},
      {"p50 of the ranks' means", 7.5e-6},
      {"p75 of the ranks' means", 8.5e-6},
      {"p99 of the ranks' means", 11e-6},
      {"max of the ranks' means", 12e-6},
      {"mean of the ranks' means", 7.9e-6},
      {"mean latency of reads", 3e-6},
      {"mean latency of writes", 13e-6},
      {"mean latency of remote operations", 21e-6},
      {"mean latency of writes / of reads", 13.0 / 3.0},
      {"longest wait", 40e-6},
      {"compare-and-swaps per operation", 0.6},
      {"mean acquire", 6e-6},
      {"mean release", 3e-6},
      {"mean acquire / mean release", 2},
      {"standard deviation of acquires", 1.5e-6},
      {"standard deviation of releases", 0.5e-6},
      {"elapsed", 2},
      {"elapsed per round", 0.1},
      {"mean latency per rank", 1.6e-6},
      {"network operations per operation", 2.1},
      {"atomics per operation", 1.8},
      {"failed compare-and-swaps per operation", 0.2},
      {"failed compare-and-swaps / compare-and-swaps", 0.25},
      {"compare-and-swaps per rank and second", 8},
      {"most network operations of a release", 2},
      {"messages per operation", 4},
      {"server's processor", 0.75},
      {"server's card", 0.125},
      {"p75 / p25", 6e-6},
      {"p75 - p25", 4e-6},
      {"(p75 - p25) / p50", 1},
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
  run.erase("remote");
  run.erase("release_network_ops_max");
  run["ops"] = 0;
  for (const char* const name : {"p50", "mean acquire", "mean latency of remote operations",
                                 "most network operations of a release", "elapsed per round",
                                 "network operations per operation"})
    EXPECT_FALSE(metric_of(run, name)) << name;
}

TEST(Metric, ADistributionIsPointsInSeconds) {
  using points = std::vector<std::pair<double, double>>;
  EXPECT_EQ(distribution_of(a_run(), "distribution of latencies"),
            (points{{1.0 * 1e-6, 0.5}, {9.0 * 1e-6, 1.0}}));
  EXPECT_EQ(distribution_of(a_run(), "distribution of the ranks' means"),
            (points{{7.0 * 1e-6, 0.25}, {12.0 * 1e-6, 1.0}}));
  EXPECT_TRUE(is_distribution("distribution of latencies"));
  EXPECT_FALSE(is_distribution("p50"));
}

TEST(Metric, AFiguresUnitIsOfItsMetric) {
  EXPECT_TRUE(fits_figure("throughput", "million operations/s"));
  EXPECT_FALSE(fits_figure("throughput", "us"));
  EXPECT_TRUE(fits_figure("mean latency", "ms"));
  EXPECT_FALSE(fits_figure("mean latency", "operations/s"));
  EXPECT_TRUE(fits_figure("distribution of latencies", "us"));
  EXPECT_FALSE(fits_figure("distribution of latencies", "x"));
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
