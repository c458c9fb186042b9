// The documents that validate() and parse_file() accept and refuse, and their errors.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lab/report/report.hpp"
#include "tests/lab/report/sample.hpp"

namespace lockflight::report {
namespace {

using nlohmann::json;
using pointer = json::json_pointer;

std::string complaint_about(const json& bench) {
  return complaint([&] { validate(bench); });
}

/// The sample with one value replaced.
json with(const std::string& where, const json& value) {
  json bench = small_sample();
  bench[pointer(where)] = value;
  return bench;
}

TEST(Validate, AcceptsTheSample) { EXPECT_NO_THROW(validate(sample())); }

TEST(Validate, AcceptsADocumentWithoutRuns) {
  EXPECT_NO_THROW(validate(with("/runs", json::array())));
}

TEST(Validate, AcceptsFieldsThatNobodyNamed) {
  json bench = small_sample();
  bench["note"] = "by hand";
  bench["runs"][0]["seed"] = 7;
  bench["runs"][0]["latency_us"]["p9999"] = 1.5;
  EXPECT_NO_THROW(validate(bench));
}

TEST(Validate, AcceptsNullWhereThereWasNothingToMeasure) {
  for (const char* where : {"machine", "levels", "locality", "fairness_jain", "max_wait_us",
                            "latency_us", "latency_cdf", "read/latency_us", "write/latency_us",
                            "latency_us/mean", "latency_us/p25", "latency_us/p50", "latency_us/p75",
                            "latency_us/p99", "latency_us/p999", "latency_us/max"}) {
    EXPECT_NO_THROW(validate(with("/runs/0/" + std::string(where), nullptr))) << where;
  }
}

TEST(Validate, NamesEveryMissingField) {
  const std::vector<std::string> parents = {"",
                                            "/runs/0",
                                            "/runs/0/latency_us",
                                            "/runs/0/read",
                                            "/runs/0/write/latency_us",
                                            "/runs/0/fabric_ops",
                                            "/runs/0/fabric_ops/nic",
                                            "/runs/0/fabric_ops/cpu"};
  for (const std::string& parent : parents) {
    const json& whole = small_sample();
    for (const auto& item : whole.at(pointer(parent)).items()) {
      if (item.key() == "latency_cdf") continue;
      json bench = whole;
      bench[pointer(parent)].erase(item.key());
      const std::string what = complaint_about(bench);
      EXPECT_NE(what.find(item.key() + ": missing; accepted: "), std::string::npos) << what;
    }
  }
}

TEST(Validate, NamesPlaceValueAndWhatIsAccepted) {
  const struct {
    const char* where;
    json value;
    const char* message;
  } cases[] = {
      {"/lockflight", "", R"(lockflight: found ""; accepted: a non-empty string, the version)"},
      {"/host", 3, "host: found 3; accepted: an object"},
      {"/runs", json::object(), "runs: found an object; accepted: an array"},
      {"/runs/1", "x", R"(runs[1]: found "x"; accepted: an object)"},
      {"/runs/1/lock", 7, "runs[1].lock: found 7; accepted: a non-empty string"},
      {"/runs/0/kind", "semaphore",
       R"(runs[0].kind: found "semaphore"; accepted: "mutex", "rw" or "none")"},
      {"/runs/0/procs", 0, "runs[0].procs: found 0; accepted: a whole number, at least 1"},
      {"/runs/0/procs", 2.5, "runs[0].procs: found 2.5; accepted: a whole number, at least 1"},
      {"/runs/0/writers", 20, "runs[0].writers: found 20; accepted: a number from 0 to 1"},
      {"/runs/0/ops", -1, "runs[0].ops: found -1; accepted: a whole number, at least 0"},
      {"/runs/0/elapsed_s", "1", R"(runs[0].elapsed_s: found "1"; accepted: a number, at least 0)"},
      {"/runs/0/latency_us/p50", "fast",
       R"(runs[0].latency_us.p50: found "fast"; accepted: a number, at least 0, or null)"},
      {"/runs/0/read", nullptr, "runs[0].read: found null; accepted: an object"},
      {"/runs/0/read/latency_us", 1,
       "runs[0].read.latency_us: found 1; accepted: an object or null"},
      {"/runs/0/fabric_ops/nic/cas", 0.5,
       "runs[0].fabric_ops.nic.cas: found 0.5; accepted: a whole number, at least 0"},
      {"/runs/0/handoffs/1", true,
       "runs[0].handoffs[1]: found true; accepted: a whole number, at least 0"},
      {"/runs/0/violations", nullptr,
       "runs[0].violations: found null; accepted: a whole number, at least 0"},
      {"/runs/0/machine", json::array({1, 2}),
       "runs[0].machine: found an array of 2; accepted: a non-empty string or null"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(complaint_about(with(c.where, c.value)), std::string("bench JSON: ") + c.message);
  }
}

TEST(Validate, RefusesNumbersThatAreNone) {
  const std::string what = complaint_about(with("/runs/0/throughput_ops_s", std::nan("")));
  EXPECT_NE(what.find("runs[0].throughput_ops_s"), std::string::npos) << what;
}

TEST(Validate, CutsLongValuesAndKeepsOneLine) {
  const std::string what = complaint_about(with("/runs/0/kind", std::string(500, 'a') + "\n"));
  EXPECT_LT(what.size(), 160U) << what;
}

TEST(Validate, ChecksTheDistribution) {
  const struct {
    json value;
    const char* place;
  } cases[] = {
      {"x", "runs[0].latency_cdf: found"},
      {json::parse("[[1, 0.5], [2]]"), "runs[0].latency_cdf[1]: found an array of 1"},
      {json::parse("[[2, 0.5], [1, 0.6]]"), "runs[0].latency_cdf[1][0]: found 1"},
      {json::parse("[[1, 0.5], [2, 0.4]]"), "runs[0].latency_cdf[1][1]: found 0.4"},
      {json::parse("[[1, 0.5], [2, 1.1]]"), "runs[0].latency_cdf[1][1]: found 1.1"},
  };
  for (const auto& c : cases) {
    const std::string what = complaint_about(with("/runs/0/latency_cdf", c.value));
    EXPECT_NE(what.find(c.place), std::string::npos) << what;
  }
}

TEST(Validate, ChecksTheRanksThatWereLost) {
  json bench = small_sample();
  bench["runs"][0]["lost_ranks"] = {1, 3};
  EXPECT_NO_THROW(validate(bench));
  for (const json& bad : {json(1), json::parse("[-1]"), json::parse("[\"one\"]")}) {
    const std::string what = complaint_about(with("/runs/0/lost_ranks", bad));
    EXPECT_NE(what.find("runs[0].lost_ranks: found"), std::string::npos) << what;
  }
}

TEST(Validate, RefusesWhatIsNoObject) {
  EXPECT_NE(complaint_about(json::array()).find("the document: found an array of 0"),
            std::string::npos);
}

TEST(Validate, RefusesBottomlessNesting) {
  json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = json::array({std::move(deep)});
  EXPECT_NE(complaint_about(with("/host/deep", deep)).find("nested more than 64 deep"),
            std::string::npos);
}

// ---- files ---------------------------------------------------------------------------------

class ParseFile : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            ("lockflight_report_" + std::to_string(::getpid()) + "_" + info->name() + ".json");
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::string complaint_about_bytes(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    const std::string what = complaint([&] { parse_file(path_.string()); });
    EXPECT_EQ(what.find(path_.string() + ": "), 0U) << what;
    return what.substr(std::min(what.size(), path_.string().size() + 2));
  }

  std::filesystem::path path_;
};

TEST_F(ParseFile, ReadsTheSample) { EXPECT_EQ(sample().at("runs").size(), 80U); }

TEST_F(ParseFile, SaysWhyAFileCannotBeRead) {
  const std::string what = complaint([&] { parse_file(path_.string()); });
  EXPECT_EQ(what,
            path_.string() + ": cannot be read: No such file or directory (accepted: a JSON file)");
}

TEST_F(ParseFile, RefusesADirectory) {
  std::filesystem::create_directory(path_);
  const std::string what = complaint([&] { parse_file(path_.string()); });
  EXPECT_NE(what.find("Is a directory"), std::string::npos) << what;
}

TEST_F(ParseFile, RefusesAnEmptyFile) {
  EXPECT_EQ(complaint_about_bytes(" \n"), "is empty; accepted: a JSON document");
}

TEST_F(ParseFile, NamesLineAndColumnOfTheDamage) {
  EXPECT_EQ(complaint_about_bytes("{\n  \"a\": 1,\n  \"b\": oops\n}").find("line 3, column 8: "),
            0U);
  EXPECT_EQ(complaint_about_bytes("]").find("line 1, column 1: "), 0U);
}

TEST_F(ParseFile, NamesTheEndOfACutFile) {
  const std::string what = complaint_about_bytes("{\"runs\": [1, 2");
  EXPECT_EQ(what.find("line 1, column 15: "), 0U) << what;
}

TEST_F(ParseFile, RefusesNumbersOutOfRangeAndBrokenText) {
  EXPECT_NE(complaint_about_bytes("[1e999]").find("number"), std::string::npos);
  EXPECT_NE(complaint_about_bytes("[\"\xff\xfe\"]").find("line 1, column 3"), std::string::npos);
}

}  // namespace
}  // namespace lockflight::report
