#include "lab/reproduce/read_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockflight::reproduce {
namespace {

using nlohmann::json;

// Keys of a run, and the types of their values. The program's benchmark knows what is accepted for
// each.
enum class type : std::uint8_t { text, whole, number, yes_or_no, numbers, role };
struct key_of_run {
  std::string_view name;
  type is;
};
constexpr key_of_run keys_of_run[] = {
    {"machine", type::text},    {"machine_set", type::numbers}, {"lock", type::text},
    {"workload", type::text},   {"procs", type::whole},         {"levels", type::text},
    {"writers", type::number},  {"ops", type::whole},           {"seconds", type::number},
    {"set", type::numbers},     {"locks", type::whole},         {"locality", type::number},
    {"think_us", type::number}, {"call_us", type::number},      {"hold_us", type::number},
    {"skew", type::number},     {"bytes", type::whole},         {"server_busy", type::yes_or_no},
    {"operation", type::text},  {"nodes", type::text},          {"server_load", type::whole},
    {"flags_at", type::whole},  {"warm_up", type::yes_or_no},   {"role", type::role},
};

std::string_view said(type t) {
  switch (t) {
    case type::text:
      return "a string";
    case type::whole:
      return "a whole number, at least 0";
    case type::number:
      return "a number";
    case type::yes_or_no:
      return "true or false";
    case type::numbers:
      return "a table of numbers";
    case type::role:
      return "process or operation";
  }
  return "";
}

json numbers_of(const reader& in, const toml::node& node, std::string_view key) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) in.refuse(node, key, std::string(said(type::numbers)));
  json all = json::object();
  for (const auto& [name, value] : *table) {
    const std::string full = fmt::format("{}.{}", key, name.str());
    if (value.is_integer())
      all[std::string(name.str())] = *value.value<std::int64_t>();
    else if (value.is_floating_point())
      all[std::string(name.str())] = *value.value<double>();
    else
      in.refuse(value, full, std::string(said(type::number)));
  }
  return all;
}

json value_of(const reader& in, const toml::node& node, const key_of_run& key) {
  switch (key.is) {
    case type::text:
      if (node.is_string()) return *node.value<std::string>();
      break;
    case type::whole: {
      if (!node.is_integer() || *node.value<std::int64_t>() < 0) break;
      const std::int64_t value = *node.value<std::int64_t>();
      // A request without a number of operations has none, and then a length of its own.
      if (key.name == "ops" && value == 0) in.refuse(node, key.name, "a whole number, at least 1");
      constexpr std::int64_t most_procs = std::numeric_limits<int>::max();
      if (key.name == "procs" && value > most_procs)
        in.refuse(node, key.name, fmt::format("a whole number, at most {}", most_procs));
      return value;
    }
    case type::number:
      if (node.is_number() && std::isfinite(*node.value<double>())) return *node.value<double>();
      break;
    case type::yes_or_no:
      if (node.is_boolean()) return *node.value<bool>();
      break;
    case type::numbers:
      return numbers_of(in, node, key.name);
    case type::role:
      if (const auto word = node.value<std::string>(); word == "process" || word == "operation")
        return *word;
      break;
  }
  in.refuse(node, key.name, std::string(said(key.is)));
}

}  // namespace

run run_of(const toml::table& table, const std::string& path, const std::string& name,
           std::string_view besides) {
  reader in(table, path, name);
  if (!besides.empty()) static_cast<void>(in.find(besides));
  run made = json::object();
  for (const key_of_run& key : keys_of_run)
    if (const toml::node* const found = in.find(key.name))
      made[std::string(key.name)] = value_of(in, *found, key);
  in.finish();
  return made;
}

void complete(run& what, const std::string& machine, const reader& in, const toml::node& at,
              const std::string& name) {
  if (!what.contains("machine")) what["machine"] = machine;
  for (const char* const must : {"workload", "procs"})
    if (!what.contains(must)) in.fail(at, fmt::format("{}.{} is missing", name, must));
}

std::string line_of_text(reader& in, std::string_view key) {
  std::string text = in.text(key);
  constexpr unsigned char first_printable = 0x20;
  constexpr unsigned char deletion = 0x7f;
  if (std::any_of(text.begin(), text.end(),
                  [](unsigned char c) { return c < first_printable || c == deletion; }))
    in.refuse(in.needed(key), key, "a string without control characters");
  return text;
}

std::string text_or_empty(reader& in, std::string_view key) {
  return in.has(key) ? line_of_text(in, key) : std::string();
}

}  // namespace lockflight::reproduce
