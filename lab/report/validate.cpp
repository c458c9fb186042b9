// The rules for a bench document. Each object has a list of rules; a rule names a field, says in
// words what is accepted, and tests it. The words are used in the message as they are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "lab/report/report.hpp"

namespace lockflight::report {
namespace {

using nlohmann::json;

struct rule {
  std::string_view name;
  std::string_view accepted;
  bool (*ok)(const json&);
};

bool is_text(const json& v) { return v.is_string() && !v.get_ref<const std::string&>().empty(); }
bool is_text_or_null(const json& v) { return v.is_null() || is_text(v); }
bool is_object(const json& v) { return v.is_object(); }
bool is_object_or_null(const json& v) { return v.is_null() || v.is_object(); }
bool is_array(const json& v) { return v.is_array(); }

bool is_amount(const json& v) {
  return v.is_number() && std::isfinite(v.get<double>()) && v.get<double>() >= 0;
}
bool is_amount_or_null(const json& v) { return v.is_null() || is_amount(v); }

// Whole numbers written as 1e6 count too: other tools write such files.
bool is_count(const json& v) {
  return is_amount(v) && v.get<double>() == std::floor(v.get<double>());
}
bool is_positive_count(const json& v) { return is_count(v) && v.get<double>() >= 1; }

bool is_fraction(const json& v) { return is_amount(v) && v.get<double>() <= 1; }
bool is_fraction_or_null(const json& v) { return v.is_null() || is_fraction(v); }

bool is_kind(const json& v) { return v == "mutex" || v == "rw" || v == "none"; }

constexpr std::string_view text = "a non-empty string";
constexpr std::string_view text_or_null = "a non-empty string or null";
constexpr std::string_view object = "an object";
constexpr std::string_view object_or_null = "an object or null";
constexpr std::string_view array = "an array";
constexpr std::string_view amount = "a number, at least 0";
constexpr std::string_view amount_or_null = "a number, at least 0, or null";
constexpr std::string_view count = "a whole number, at least 0";
constexpr std::string_view positive_count = "a whole number, at least 1";
constexpr std::string_view fraction = "a number from 0 to 1";
constexpr std::string_view fraction_or_null = "a number from 0 to 1, or null";

constexpr rule document_rules[] = {
    {"lockflight", "a non-empty string, the version", is_text},
    {"host", object, is_object},
    {"runs", array, is_array},
};

// Fairness and the longest wait may be null for the same reason as latencies: a run without
// operations has none. Locality has a meaning in the lock table only.
constexpr rule run_rules[] = {
    {"lock", text, is_text},
    {"kind", "\"mutex\", \"rw\" or \"none\"", is_kind},
    {"fabric", text, is_text},
    {"machine", text_or_null, is_text_or_null},
    {"workload", text, is_text},
    {"procs", positive_count, is_positive_count},
    {"levels", text_or_null, is_text_or_null},
    {"writers", fraction, is_fraction},
    {"locality", fraction_or_null, is_fraction_or_null},
    {"params", object, is_object},
    {"ops", count, is_count},
    {"elapsed_s", amount, is_amount},
    {"throughput_ops_s", amount, is_amount},
    {"latency_us", object_or_null, is_object_or_null},
    {"read", object, is_object},
    {"write", object, is_object},
    {"fabric_ops", object, is_object},
    {"handoffs", array, is_array},
    {"fairness_jain", fraction_or_null, is_fraction_or_null},
    {"max_wait_us", amount_or_null, is_amount_or_null},
    {"violations", count, is_count},
};

constexpr rule latency_rules[] = {
    {"mean", amount_or_null, is_amount_or_null}, {"p25", amount_or_null, is_amount_or_null},
    {"p50", amount_or_null, is_amount_or_null},  {"p75", amount_or_null, is_amount_or_null},
    {"p99", amount_or_null, is_amount_or_null},  {"p999", amount_or_null, is_amount_or_null},
    {"max", amount_or_null, is_amount_or_null},
};

constexpr rule side_rules[] = {
    {"ops", count, is_count},
    {"latency_us", object_or_null, is_object_or_null},
};

constexpr rule fabric_rules[] = {
    {"nic", object, is_object},
    {"cpu", object, is_object},
    {"messages", count, is_count},
};

constexpr rule nic_rules[] = {
    {"put", count, is_count},       {"get", count, is_count},      {"add", count, is_count},
    {"fetch_add", count, is_count}, {"swap", count, is_count},     {"cas", count, is_count},
    {"flush", count, is_count},     {"loopback", count, is_count},
};

constexpr rule cpu_rules[] = {
    {"load", count, is_count},
    {"store", count, is_count},
    {"rmw", count, is_count},
};

// Enough for any document that a tool writes by design; a recursive walk of the document stays far
// from the end of the stack.
constexpr int max_depth = 64;

// Long or nested values are cut: the message stays one readable line.
std::string shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  std::string text_form = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text_form.size() > 60) text_form = text_form.substr(0, 57) + "...";
  return text_form;
}

[[noreturn]] void fail(const std::string& path, const std::string& found,
                       std::string_view accepted) {
  throw bad_input(fmt::format("bench JSON: {}: {}; accepted: {}",
                              path.empty() ? "the document" : path, found, accepted));
}

std::string join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

void check_fields(const json& value, const std::string& path, std::span<const rule> rules) {
  for (const rule& r : rules) {
    const auto field = value.find(r.name);
    if (field == value.end()) fail(join(path, r.name), "missing", r.accepted);
    if (!r.ok(*field)) fail(join(path, r.name), "found " + shown(*field), r.accepted);
  }
}

void check_latency(const json& owner, const std::string& path) {
  const json& latency = owner.at("latency_us");
  if (!latency.is_null()) check_fields(latency, join(path, "latency_us"), latency_rules);
}

void check_cdf(const json& run, const std::string& path) {
  const auto cdf = run.find("latency_cdf");
  if (cdf == run.end() || cdf->is_null()) return;
  const std::string cdf_path = join(path, "latency_cdf");
  if (!cdf->is_array()) {
    fail(cdf_path, "found " + shown(*cdf), "an array of [us, cumulative fraction] pairs");
  }
  double last_us = 0;
  double last_fraction = 0;
  for (std::size_t i = 0; i < cdf->size(); ++i) {
    const json& point = (*cdf)[i];
    const std::string point_path = fmt::format("{}[{}]", cdf_path, i);
    if (!point.is_array() || point.size() != 2) {
      fail(point_path, "found " + shown(point), "a pair [us, cumulative fraction]");
    }
    if (!is_amount(point[0]) || point[0].get<double>() < last_us) {
      fail(point_path + "[0]", "found " + shown(point[0]),
           fmt::format("a number, at least the one before it, {}", last_us));
    }
    if (!is_fraction(point[1]) || point[1].get<double>() < last_fraction) {
      fail(point_path + "[1]", "found " + shown(point[1]),
           fmt::format("a number from the one before it, {}, to 1", last_fraction));
    }
    last_us = point[0].get<double>();
    last_fraction = point[1].get<double>();
  }
}

void check_run(const json& run, const std::string& path) {
  if (!run.is_object()) fail(path, "found " + shown(run), object);
  check_fields(run, path, run_rules);
  check_latency(run, path);
  for (const std::string_view side : {"read", "write"}) {
    const json& part = run.at(std::string(side));
    check_fields(part, join(path, side), side_rules);
    check_latency(part, join(path, side));
  }
  const json& fabric = run.at("fabric_ops");
  const std::string fabric_path = join(path, "fabric_ops");
  check_fields(fabric, fabric_path, fabric_rules);
  check_fields(fabric.at("nic"), join(fabric_path, "nic"), nic_rules);
  check_fields(fabric.at("cpu"), join(fabric_path, "cpu"), cpu_rules);
  const json& handoffs = run.at("handoffs");
  for (std::size_t i = 0; i < handoffs.size(); ++i) {
    if (is_count(handoffs[i])) continue;
    fail(fmt::format("{}.handoffs[{}]", path, i), "found " + shown(handoffs[i]), count);
  }
  if (const auto lost = run.find("lost_ranks"); lost != run.end())
    if (!lost->is_array() || !std::all_of(lost->begin(), lost->end(), is_count))
      fail(join(path, "lost_ranks"), "found " + shown(*lost), "an array of ranks");
  check_cdf(run, path);
  // With many locks: those of the own node and the others.
  for (const std::string_view side : {"local", "remote"}) {
    const auto part = run.find(std::string(side));
    if (part == run.end()) continue;
    const std::string side_path = join(path, side);
    if (!part->is_object()) fail(side_path, "found " + shown(*part), object);
    check_fields(*part, side_path, side_rules);
    check_latency(*part, side_path);
    check_cdf(*part, side_path);
  }
}

void check_depth(const json& value, int depth) {
  if (depth > max_depth) {
    fail("", fmt::format("nested more than {} deep", max_depth),
         fmt::format("at most {} levels", max_depth));
  }
  if (!value.is_structured()) return;
  for (const json& child : value) check_depth(child, depth + 1);
}

}  // namespace

void validate(const json& bench) {
  if (!bench.is_object()) {
    fail("", "found " + shown(bench), "an object with lockflight, host and runs");
  }
  check_depth(bench, 0);
  check_fields(bench, "", document_rules);
  const json& runs = bench.at("runs");
  for (std::size_t i = 0; i < runs.size(); ++i) check_run(runs[i], fmt::format("runs[{}]", i));
}

}  // namespace lockflight::report
