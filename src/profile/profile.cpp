#include "lockflight/profile.hpp"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <set>
#include <system_error>

#include "base/whole_file.hpp"
#include "catalogue/parameters.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/all.hpp"
#include "toml/strict.hpp"

namespace lockflight {
namespace {

constexpr std::int64_t format = 1;
constexpr std::string_view format_key = "format";
constexpr std::string_view parameters_key = "parameters";

// ---- the locks that have parameters ----

/// By the locks' names. A lock's parameters are the same on every port.
const std::map<std::string, catalogue::parameter_rows>& tunable_locks() {
  static const std::map<std::string, catalogue::parameter_rows> all = [] {
    std::map<std::string, catalogue::parameter_rows> found;
    lock::all::for_each([&]<template <class> class Lock>(lock::family<Lock>) {
      using known = Lock<shm::port>;
      const catalogue::parameter_rows rows = catalogue::rows_of<typename known::parameters>;
      if (!rows.empty()) found.emplace(known::about.name, rows);
    });
    return found;
  }();
  return all;
}

// ---- reading ----

using reader = strict_toml::table<bad_profile>;

profile::origin read_origin(reader& in) {
  constexpr std::int64_t most_ranks = std::int64_t{1} << 31;
  constexpr double most_gain = 1e12;
  profile::origin found;
  if (in.has("fabric")) found.fabric = in.text("fabric");
  if (in.has("machine")) found.machine = in.text("machine");
  if (in.has("levels")) found.levels = in.text("levels");
  if (in.has("workload")) found.workload = in.text("workload");
  if (in.has("objective")) found.objective = in.text("objective");
  if (in.has("procs")) found.procs = static_cast<int>(in.whole("procs", 1, most_ranks - 1));
  if (in.has("writers")) found.writers = in.number("writers", 0, 1, "a number, 0 to 1");
  if (in.has("gain")) found.gain = in.number("gain", 0, most_gain, "a number, at least 0");
  return found;
}

profile::entry read_lock(reader in, catalogue::parameter_rows rows) {
  profile::entry made{.found = read_origin(in), .parameters = {}};
  reader values = in.open(parameters_key, "a table of parameters");
  in.finish();
  for (const catalogue::parameter_row& row : rows)
    if (values.has(row.name))
      made.parameters[std::string(row.name)] = values.whole(row.name, row.min, row.max);
  values.finish();
  return made;
}

// ---- writing ----

/// A string of TOML.
std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      constexpr std::string_view digits = "0123456789abcdef";
      out += "\\u00";
      out += digits[static_cast<unsigned char>(c) >> 4];
      out += digits[static_cast<unsigned char>(c) & 15];
      continue;
    }
    out += c;
  }
  return out + '"';
}

/// The shortest text that reads as this number.
std::string number(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return error == std::errc() ? std::string(text, end) : "0";
}

}  // namespace

profile profile::parse(std::string_view text, const std::string& path) {
  const toml::table root = strict_toml::parsed<bad_profile>(text, path);
  reader in(root, path);
  in.needed(format_key, std::to_string(format));
  in.whole(format_key, format, format);
  profile made;
  for (const auto& [name, rows] : tunable_locks())
    if (in.has(name)) made.locks_.emplace(name, read_lock(in.open(name), rows));
  in.finish();
  return made;
}

profile profile::read(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{1} << 24;
  const auto text = [&] {
    try {
      return whole_file(path, most_bytes);
    } catch (const std::system_error& e) {
      throw bad_profile("'" + path +
                        "' (accepted: a profile that can be read: " + e.code().message() + ")");
    }
  };
  return parse(text(), path);
}

profile profile::from_environment() {
  const char* const path = std::getenv("LOCKFLIGHT_PROFILE");
  return path == nullptr || *path == '\0' ? profile() : read(path);
}

const lock::parameter_values& profile::values_of(std::string_view lock) const {
  static const lock::parameter_values none;
  const auto at = locks_.find(std::string(lock));
  return at == locks_.end() ? none : at->second.parameters;
}

std::string profile::text() const {
  std::string out = std::string(format_key) + " = " + std::to_string(format) + "\n";
  const auto line = [&](std::string_view key, const std::string& value) {
    out.append(key).append(" = ").append(value).append("\n");
  };
  for (const auto& [name, of] : locks_) {
    const origin& o = of.found;
    out += "\n[" + name + "]\n";
    const auto word = [&](std::string_view key, const std::string& value) {
      if (!value.empty()) line(key, toml_string(value));
    };
    word("fabric", o.fabric);
    word("machine", o.machine);
    if (o.procs != 0) line("procs", std::to_string(o.procs));
    word("levels", o.levels);
    word("workload", o.workload);
    if (!o.workload.empty()) line("writers", number(o.writers));
    word("objective", o.objective);
    if (o.gain != 0) line("gain", number(o.gain));
    out += "[" + name + "." + std::string(parameters_key) + "]\n";
    for (const auto& [parameter, value] : of.parameters) line(parameter, std::to_string(value));
  }
  return out;
}

}  // namespace lockflight
