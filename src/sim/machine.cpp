#include "sim/machine.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <set>
#include <sstream>
#include <system_error>

namespace lockflight::sim {
namespace {

constexpr std::string_view source_suffix = "_source";
constexpr std::uint32_t most_cores = 1000;
constexpr std::uint32_t most_nodes = 1u << 22;
constexpr double most_ns = 1e9;

class reader {
 public:
  reader(const toml::table& root, std::string path) : root_(root), path_(std::move(path)) {}

  /// The functions below read from this table until the next call; `name` is empty for the root.
  void open(const std::string& name) {
    finish();
    name_ = name;
    known_.clear();
    if (name.empty()) {
      table_ = &root_;
      return;
    }
    const toml::node* const found = root_.get(name);
    if (found == nullptr) fail(root_, fmt::format("[{}] is missing", name));
    table_ = found->as_table();
    if (table_ == nullptr) fail(*found, fmt::format("{} (accepted: a table)", name));
  }

  [[nodiscard]] bool has(const std::string& table) const { return root_.contains(table); }

  /// Refuses keys that were not asked for.
  void finish() {
    if (table_ == nullptr) return;
    for (const auto& [key, node] : *table_) {
      std::string_view name = key.str();
      if (known_.contains(std::string(name))) continue;
      if (name.ends_with(source_suffix)) {
        name.remove_suffix(source_suffix.size());
        if (known_.contains(std::string(name)) && node.is_string()) continue;
      }
      fail(node, fmt::format("unknown key '{}' (accepted: {})", full(key.str()),
                             fmt::join(known_, ", ")));
    }
  }

  std::string text(const std::string& key) {
    const toml::node& found = needed(key);
    const auto value = found.value<std::string>();
    if (!value) fail(found, fmt::format("{} (accepted: a string)", full(key)));
    return *value;
  }

  std::string word_of(const std::string& key, const std::vector<std::string>& accepted) {
    const std::string value = text(key);
    if (std::find(accepted.begin(), accepted.end(), value) == accepted.end())
      fail(needed(key),
           fmt::format("{} '{}' (accepted: {})", full(key), value, fmt::join(accepted, ", ")));
    return value;
  }

  std::uint32_t count(const std::string& key, std::uint32_t least, std::uint32_t most) {
    return counted(needed(key), key, least, most);
  }

  std::vector<std::uint32_t> counts(const std::string& key, std::uint32_t least,
                                    std::uint32_t most) {
    const toml::node& found = needed(key);
    const toml::array* const array = found.as_array();
    if (array == nullptr || array->empty())
      fail(found, fmt::format("{} (accepted: an array of whole numbers)", full(key)));
    std::vector<std::uint32_t> values;
    for (const toml::node& node : *array) values.push_back(counted(node, key, least, most));
    return values;
  }

  double number(const std::string& key, double least, double most) {
    const toml::node& found = needed(key);
    const auto value = found.value<double>();
    if (!value || !(*value >= least && *value <= most))
      fail(found, fmt::format("{} {} (accepted: {} to {})", full(key), shown(found), least, most));
    return *value;
  }

  time_ps ns(const std::string& key, double least = 0) {
    return from_ns(number(key, least, most_ns));
  }

  bool flag(const std::string& key) {
    const toml::node& found = needed(key);
    if (!found.is_boolean())
      fail(found, fmt::format("{} {} (accepted: true or false)", full(key), shown(found)));
    return *found.value<bool>();
  }

  /// Whether the file has this optional key.
  [[nodiscard]] bool offers(const std::string& key) {
    known_.insert(key);
    return table_->contains(key);
  }

  /// Says that there may be a key of that name.
  void knows(const std::string& key) { known_.insert(key); }

  [[noreturn]] void fail_at(const std::string& key, const std::string& why) {
    fail(needed(key), fmt::format("{} {}", full(key), why));
  }

 private:
  [[nodiscard]] std::string full(std::string_view key) const {
    return name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key);
  }

  const toml::node& needed(const std::string& key) {
    known_.insert(key);
    const toml::node* const found = table_->get(key);
    if (found == nullptr) fail(*table_, fmt::format("{} is missing", full(key)));
    return *found;
  }

  std::uint32_t counted(const toml::node& node, const std::string& key, std::uint32_t least,
                        std::uint32_t most) {
    const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
    if (!value || *value < least || *value > most)
      fail(node, fmt::format("{} {} (accepted: a whole number, {} to {})", full(key), shown(node),
                             least, most));
    return static_cast<std::uint32_t>(*value);
  }

  static std::string shown(const toml::node& node) {
    if (const auto text = node.value_exact<std::string>()) return fmt::format("'{}'", *text);
    if (const auto number = node.value_exact<double>()) return fmt::format("'{}'", *number);
    std::ostringstream out;
    node.visit([&](const auto& value) { out << value; });
    return fmt::format("'{}'", out.str());
  }

  [[noreturn]] void fail(const toml::node& at, const std::string& why) const {
    throw bad_machine(fmt::format("{}:{}: {}", path_, at.source().begin.line, why));
  }

  const toml::table& root_;
  std::string path_;
  std::string name_;
  const toml::table* table_ = nullptr;
  std::set<std::string> known_;
};

shape shape_of(const std::string& name) {
  if (name == "flat") return shape::flat;
  if (name == "torus") return shape::torus;
  if (name == "mesh") return shape::mesh;
  if (name == "fat-tree") return shape::fat_tree;
  return shape::dragonfly;
}

void read_nodes(reader& in, machine_profile& to) {
  in.open("node");
  to.cores = in.count("cores", 1, most_cores);
  to.sockets = in.count("sockets", 1, most_cores);
  if (to.cores % to.sockets != 0)
    in.fail_at("sockets",
               fmt::format("'{}' (accepted: a divisor of the {} cores)", to.sockets, to.cores));
  to.nodes = in.count("nodes", 1, most_nodes);
}

// A CPU operation that took no time would let a loop around it run for ever at one moment.
void read_cpu(reader& in, cpu_profile& to) {
  constexpr double least_ns = 0.001;
  in.open("cpu");
  to.hit = in.ns("hit_ns", least_ns);
  to.rmw = in.ns("rmw_ns", least_ns);
  to.socket_transfer = in.ns("socket_transfer_ns");
  to.node_transfer = in.ns("node_transfer_ns");
  to.dma_transfer = in.ns("dma_transfer_ns");
  to.mesh_hop = in.ns("mesh_hop_ns");
  if (in.offers("wake_ns")) to.wake = in.ns("wake_ns");
  if (in.offers("slice_ns")) to.slice = in.ns("slice_ns", 1);
}

void read_nic(reader& in, nic_profile& to) {
  constexpr std::uint32_t many = 1u << 20;
  in.open("nic");
  to.post = in.ns("post_ns", 0.001);
  to.complete = in.ns("complete_ns");
  to.gap = in.ns("gap_ns");
  to.receive_gap = in.ns("receive_gap_ns");
  to.memory = in.ns("memory_ns");
  to.atomic = in.ns("atomic_ns");
  to.atomic_cell = in.ns("atomic_cell_ns");
  to.atomic_engines = in.count("atomic_engines", 1, most_cores);
  to.injection_engines = in.count("injection_engines", 1, most_cores);
  to.loopback = in.ns("loopback_ns");
  to.loopback_slots = in.count("loopback_slots", 0, many);
  to.loopback_congested = in.ns("loopback_congested_ns");
  to.connections = in.count("connections", 0, many);
  to.connection_miss = in.ns("connection_miss_ns");
  if (in.offers("own_node")) {
    const std::string who = in.word_of("own_node", {"card", "cells", "all"});
    to.own = who == "card" ? own_node::card : who == "cells" ? own_node::cells : own_node::all;
  }
  if (in.offers("ordered_posts")) to.ordered_posts = in.flag("ordered_posts");
}

void read_network(reader& in, network_profile& to, std::uint32_t nodes) {
  in.open("network");
  to.wiring = shape_of(in.word_of("shape", {"flat", "torus", "mesh", "fat-tree", "dragonfly"}));
  if (to.wiring != shape::flat) {
    to.dimensions = in.counts("dimensions", 1, most_nodes);
    if (to.wiring == shape::dragonfly && to.dimensions.size() != 3)
      in.fail_at("dimensions", "(accepted: groups, routers of a group, nodes of a router)");
    const auto room =
        std::accumulate(to.dimensions.begin(), to.dimensions.end(), 1.0, std::multiplies<>());
    if (room < nodes)
      in.fail_at("dimensions", fmt::format("have room for {:.0f} nodes (accepted: at least the {} "
                                           "of node.nodes)",
                                           room, nodes));
  }
  to.latency = in.ns("latency_ns");
  to.hop = in.ns("hop_ns");
  to.byte_ps = in.number("byte_ns", 0, most_ns) * 1e3;
  const bool has_links = to.wiring != shape::flat && to.wiring != shape::fat_tree;
  constexpr const char* only_there = "(accepted: with shape torus, mesh or dragonfly only)";
  if (in.offers("link_gap_ns")) {
    to.link_gap = in.ns("link_gap_ns");
    if (!has_links && to.link_gap > 0) in.fail_at("link_gap_ns", only_there);
  }
  if (in.offers("arbitration")) {
    if (in.word_of("arbitration", {"arrival", "turns"}) == "turns") to.arbiter = arbitration::turns;
    if (!has_links && to.arbiter == arbitration::turns) in.fail_at("arbitration", only_there);
  }
}

// Only a many-core has it.
void read_memory(reader& in, memory_profile& to, std::uint32_t nodes) {
  constexpr std::uint32_t most_accesses = 64;
  in.open("memory");
  to.controllers = in.counts("controllers", 0, nodes - 1);
  to.controller = in.ns("controller_ns", 0.001);
  to.read = in.ns("read_ns");
  to.word_accesses = in.count("word_accesses", 1, most_accesses);
}

void replace(toml::table& root, const replaced_numbers& instead) {
  for (const auto& [name, value] : instead) {
    const std::size_t dot = name.find('.');
    toml::table* const in = dot == std::string::npos ? &root : root[name.substr(0, dot)].as_table();
    const std::string key = dot == std::string::npos ? name : name.substr(dot + 1);
    if (in == nullptr || !in->contains(key) || !(*in)[key].is_number())
      throw bad_replacement(fmt::format(
          "'{}={}' (accepted: a number of the machine file, as table.key)", name, value));
    if (value == std::trunc(value) && (*in)[key].is_integer())
      in->insert_or_assign(key, static_cast<std::int64_t>(value));
    else
      in->insert_or_assign(key, value);
  }
}

}  // namespace

machine_profile parse_machine(std::string_view text, const std::string& path,
                              const replaced_numbers& instead) {
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& e) {
    throw bad_machine(
        fmt::format("{}:{}: {}", path, e.source().begin.line, std::string(e.description())));
  }
  replace(root, instead);
  machine_profile made;
  reader in(root, path);
  read_nodes(in, made);
  read_cpu(in, made.cpu);
  read_nic(in, made.nic);
  read_network(in, made.network, made.nodes);
  if (in.has("memory")) read_memory(in, made.memory, made.nodes);
  in.open("messages");
  made.messages.send = in.ns("send_ns");
  made.messages.receive = in.ns("receive_ns");
  in.open("");
  made.name = in.text("name");
  made.what = in.text("what");
  made.jitter = in.number("jitter", 0, 0.5);
  for (const char* const table : {"node", "cpu", "nic", "network", "memory", "messages"})
    in.knows(table);
  in.finish();
  return made;
}

machine_profile read_machine(const std::string& path, const replaced_numbers& instead) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad())
    throw std::system_error(errno, std::generic_category(), "reading " + path);
  return parse_machine(text, path, instead);
}

std::vector<std::string> names_of_machines() {
  std::vector<std::string> names;
  for (const built_in_machine& m : built_in_machines()) names.emplace_back(m.name);
  return names;
}

machine_profile find_machine(const std::string& name_or_path, const replaced_numbers& instead) {
  // A folder of that name is ignored.
  std::error_code ignored;
  if (!std::filesystem::exists(name_or_path, ignored) ||
      std::filesystem::is_directory(name_or_path, ignored)) {
    for (const built_in_machine& m : built_in_machines())
      if (m.name == name_or_path)
        return parse_machine(m.text, fmt::format("{}.toml", m.name), instead);
  }
  try {
    return read_machine(name_or_path, instead);
  } catch (const std::system_error& e) {
    throw bad_machine(fmt::format("'{}' (accepted: a machine file that can be read: {}; or {})",
                                  name_or_path, e.code().message(),
                                  fmt::join(names_of_machines(), ", ")));
  }
}

}  // namespace lockflight::sim
