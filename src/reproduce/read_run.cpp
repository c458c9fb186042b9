#include "reproduce/read_run.hpp"

#include <fmt/format.h>

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
    {"machine", type::text},
    {"machine_set", type::numbers},
    {"lock", type::text},
    {"workload", type::text},
    {"procs", type::whole},
    {"levels", type::text},
    {"writers", type::number},
    {"ops", type::whole},
    {"seconds", type::number},
    {"set", type::numbers},
    {"locks", type::whole},
    {"locality", type::number},
    {"think_us", type::number},
    {"call_us", type::number},
    {"hold_us", type::number},
    {"bytes", type::whole},
    {"server_busy", type::yes_or_no},
    {"operation", type::text},
    {"nodes", type::text},
    {"server_load", type::whole},
    {"flags_at", type::whole},
    {"warm_up", type::yes_or_no},
    {"role", type::role},
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
    case type::whole:
      if (node.is_integer() && *node.value<std::int64_t>() >= 0) return *node.value<std::int64_t>();
      break;
    case type::number:
      if (node.is_number()) return *node.value<double>();
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

std::string text_or_empty(reader& in, std::string_view key) {
  return in.has(key) ? in.text(key) : std::string();
}

}  // namespace lockflight::reproduce
