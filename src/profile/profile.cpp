#include "lockflight/profile.hpp"

// Some broken files fail the parser's assertions, or its assumptions with NDEBUG. Without either
// the parser refuses them too.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "catalogue/parameters.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/all.hpp"

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

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string shown(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return "'" + *text + "'";
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return "'" + out.str() + "'";
}

/// An error text as one line, whatever a file's keys and strings contain.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

/// One table of the file. Keys that are not asked for are refused.
class reader {
 public:
  reader(const toml::table& table, const std::string& path, std::string name = "")
      : table_(table), path_(path), name_(std::move(name)) {}

  [[nodiscard]] const toml::node* find(std::string_view key) {
    known_.emplace(key);
    return table_.get(key);
  }
  const toml::node& needed(std::string_view key, const std::string& accepted) {
    const toml::node* const found = find(key);
    if (found == nullptr) fail(table_, full(key) + " is missing (accepted: " + accepted + ")");
    return *found;
  }

  void text(std::string_view key, std::string& to) {
    const toml::node* const found = find(key);
    if (found == nullptr) return;
    const auto value = found->value_exact<std::string>();
    if (!value) refuse(*found, key, "a string");
    to = *value;
  }
  void number(std::string_view key, double& to, double most, const std::string& accepted) {
    const toml::node* const found = find(key);
    if (found == nullptr) return;
    const auto value = found->is_number() ? found->value<double>() : std::nullopt;
    if (!value || !(*value >= 0 && *value <= most)) refuse(*found, key, accepted);
    to = *value;
  }
  std::int64_t whole(const toml::node& found, std::string_view key, std::int64_t least,
                     std::int64_t most) const {
    const auto value = found.value_exact<std::int64_t>();
    if (!value || *value < least || *value > most)
      refuse(found, key,
             "a whole number, " + std::to_string(least) + " to " + std::to_string(most));
    return *value;
  }
  const toml::table& table(const toml::node& found, std::string_view key) const {
    if (!found.is_table()) refuse(found, key, "a table");
    return *found.as_table();
  }

  void finish() const {
    for (const auto& [key, node] : table_)
      if (!known_.contains(std::string(key.str())))
        fail(node, (catalogue::was_removed(key.str()) ? "removed" : "unknown") +
                       (" key '" + full(key.str())) + "' (accepted: " + joined(known_) + ")");
  }

  [[noreturn]] void refuse(const toml::node& at, std::string_view key,
                           const std::string& accepted) const {
    fail(at, full(key) + " " + shown(at) + " (accepted: " + accepted + ")");
  }
  [[noreturn]] void fail(const toml::node& at, const std::string& why) const {
    throw bad_profile(one_line(path_ + ":" + std::to_string(at.source().begin.line) + ": " + why));
  }

 private:
  [[nodiscard]] std::string full(std::string_view key) const {
    return name_.empty() ? std::string(key) : name_ + "." + std::string(key);
  }

  const toml::table& table_;
  const std::string& path_;
  std::string name_;
  std::set<std::string> known_;
};

profile::origin read_origin(reader& in) {
  constexpr std::int64_t most_ranks = std::int64_t{1} << 31;
  constexpr double most_gain = 1e12;
  profile::origin found;
  in.text("fabric", found.fabric);
  in.text("machine", found.machine);
  in.text("levels", found.levels);
  in.text("workload", found.workload);
  in.text("objective", found.objective);
  if (const toml::node* const procs = in.find("procs"))
    found.procs = static_cast<int>(in.whole(*procs, "procs", 1, most_ranks - 1));
  in.number("writers", found.writers, 1, "a number, 0 to 1");
  in.number("gain", found.gain, most_gain, "a number, at least 0");
  return found;
}

profile::entry read_lock(const toml::table& table, const std::string& path, const std::string& name,
                         catalogue::parameter_rows rows) {
  reader in(table, path, name);
  profile::entry made{.found = read_origin(in), .parameters = {}};
  const toml::table& parameters =
      in.table(in.needed(parameters_key, "a table of parameters"), parameters_key);
  in.finish();
  reader values(parameters, path, name + "." + std::string(parameters_key));
  for (const catalogue::parameter_row& row : rows)
    if (const toml::node* const value = values.find(row.name))
      made.parameters[std::string(row.name)] = values.whole(*value, row.name, row.min, row.max);
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
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& e) {
    throw bad_profile(one_line(path + ":" + std::to_string(e.source().begin.line) + ": " +
                               std::string(e.description())));
  }
  reader in(root, path);
  const std::string accepted = std::to_string(format);
  in.whole(in.needed(format_key, accepted), format_key, format, format);
  profile made;
  for (const auto& [name, rows] : tunable_locks())
    if (const toml::node* const found = in.find(name))
      made.locks_.emplace(name, read_lock(in.table(*found, name), path, name, rows));
  in.finish();
  return made;
}

profile profile::read(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in.is_open()) text << in.rdbuf();
  // A folder can be opened; reading it fails with a reason.
  if (!in.is_open() || (text.view().empty() && errno != 0))
    throw bad_profile(one_line("'" + path + "' (accepted: a profile that can be read: " +
                               std::generic_category().message(errno) + ")"));
  return parse(text.view(), path);
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
