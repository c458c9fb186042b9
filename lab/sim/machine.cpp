#include "lab/sim/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>
#include <set>
#include <sstream>
#include <system_error>

#include "base/whole_file.hpp"
#include "toml/strict.hpp"

namespace lockflight::sim {
namespace {

constexpr std::string_view source_suffix = "_source";
constexpr std::uint32_t most_cores = 1000;
constexpr std::uint32_t most_nodes = 1u << 22;
constexpr double most_ns = 1e9;

using reader = strict_toml::table<bad_machine>;

/// A table of the file, in which each number may say where it comes from.
reader open_table(reader& root, const char* name) {
  if (!root.has(name)) root.fail(root.from(), fmt::format("[{}] is missing", name));
  reader made = root.open(name);
  made.may_have_notes(source_suffix);
  return made;
}

std::uint32_t count(reader& in, std::string_view key, std::uint32_t least, std::uint32_t most) {
  return static_cast<std::uint32_t>(in.whole(key, least, most));
}
std::vector<std::uint32_t> counts(reader& in, std::string_view key, std::uint32_t least,
                                  std::uint32_t most) {
  std::vector<std::uint32_t> made;
  for (const std::int64_t value : in.wholes(key, least, most))
    made.push_back(static_cast<std::uint32_t>(value));
  return made;
}
time_ps ns(reader& in, std::string_view key, double least = 0) {
  return from_ns(in.number(key, least, most_ns));
}

shape shape_of(const std::string& name) {
  if (name == "flat") return shape::flat;
  if (name == "torus") return shape::torus;
  if (name == "mesh") return shape::mesh;
  if (name == "fat-tree") return shape::fat_tree;
  return shape::dragonfly;
}

void read_nodes(reader in, machine_profile& to) {
  to.cores = count(in, "cores", 1, most_cores);
  to.sockets = count(in, "sockets", 1, most_cores);
  if (to.cores % to.sockets != 0)
    in.refuse(in.needed("sockets"), "sockets", fmt::format("a divisor of the {} cores", to.cores));
  to.nodes = count(in, "nodes", 1, most_nodes);
  in.finish();
}

// A CPU operation that took no time would let a loop around it run for ever at one moment.
void read_cpu(reader in, cpu_profile& to) {
  constexpr double least_ns = 0.001;
  to.hit = ns(in, "hit_ns", least_ns);
  to.rmw = ns(in, "rmw_ns", least_ns);
  to.socket_transfer = ns(in, "socket_transfer_ns");
  to.node_transfer = ns(in, "node_transfer_ns");
  to.dma_transfer = ns(in, "dma_transfer_ns");
  to.mesh_hop = ns(in, "mesh_hop_ns");
  if (in.has("wake_ns")) to.wake = ns(in, "wake_ns");
  if (in.has("slice_ns")) to.slice = ns(in, "slice_ns", 1);
  in.finish();
}

void read_nic(reader in, nic_profile& to) {
  constexpr std::uint32_t many = 1u << 20;
  to.post = ns(in, "post_ns", 0.001);
  to.complete = ns(in, "complete_ns");
  to.gap = ns(in, "gap_ns");
  to.receive_gap = ns(in, "receive_gap_ns");
  to.memory = ns(in, "memory_ns");
  if (in.has("put_ns")) to.put = ns(in, "put_ns");
  to.atomic = ns(in, "atomic_ns");
  to.atomic_cell = ns(in, "atomic_cell_ns");
  to.atomic_engines = count(in, "atomic_engines", 1, most_cores);
  to.injection_engines = count(in, "injection_engines", 1, most_cores);
  to.loopback = ns(in, "loopback_ns");
  to.loopback_slots = count(in, "loopback_slots", 0, many);
  to.loopback_congested = ns(in, "loopback_congested_ns");
  to.connections = count(in, "connections", 0, many);
  to.connection_miss = ns(in, "connection_miss_ns");
  if (in.has("own_node")) {
    const std::string who = in.word_of("own_node", std::array{"card", "cells", "all"});
    to.own = who == "card" ? own_node::card : who == "cells" ? own_node::cells : own_node::all;
  }
  if (in.has("ordered_posts")) to.ordered_posts = in.flag("ordered_posts");
  in.finish();
}

void read_network(reader in, network_profile& to, std::uint32_t nodes) {
  to.wiring =
      shape_of(in.word_of("shape", std::array{"flat", "torus", "mesh", "fat-tree", "dragonfly"}));
  if (to.wiring != shape::flat) {
    to.dimensions = counts(in, "dimensions", 1, most_nodes);
    if (to.wiring == shape::dragonfly && to.dimensions.size() != 3)
      in.refuse(in.needed("dimensions"), "dimensions",
                "groups, routers of a group, nodes of a router");
    const auto room =
        std::accumulate(to.dimensions.begin(), to.dimensions.end(), 1.0, std::multiplies<>());
    if (room < nodes)
      in.fail(in.needed("dimensions"),
              fmt::format("{} have room for {:.0f} nodes (accepted: at least the {} of node.nodes)",
                          in.full("dimensions"), room, nodes));
  }
  to.latency = ns(in, "latency_ns");
  to.hop = ns(in, "hop_ns");
  to.byte_ps = in.number("byte_ns", 0, most_ns) * 1e3;
  const bool has_links = to.wiring != shape::flat && to.wiring != shape::fat_tree;
  constexpr const char* only_there = "with shape torus, mesh or dragonfly only";
  if (in.has("link_gap_ns")) {
    to.link_gap = ns(in, "link_gap_ns");
    if (!has_links && to.link_gap > 0)
      in.refuse(in.needed("link_gap_ns"), "link_gap_ns", only_there);
  }
  if (in.has("arbitration")) {
    if (in.word_of("arbitration", std::array{"arrival", "turns"}) == "turns")
      to.arbiter = arbitration::turns;
    if (!has_links && to.arbiter == arbitration::turns)
      in.refuse(in.needed("arbitration"), "arbitration", only_there);
  }
  in.finish();
}

// Only a many-core has it.
void read_memory(reader in, memory_profile& to, std::uint32_t nodes, time_ps latency) {
  constexpr std::uint32_t most_accesses = 64;
  to.controllers = counts(in, "controllers", 0, nodes - 1);
  to.controller = ns(in, "controller_ns", 0.001);
  to.read = ns(in, "read_ns");
  to.word_accesses = count(in, "word_accesses", 1, most_accesses);
  if (in.has("tile_nodes")) to.tile_nodes = count(in, "tile_nodes", 1, nodes);
  if (in.has("port_ns")) {
    to.port = ns(in, "port_ns");
    // A passage is part of a way, which may be shorter by the jitter.
    if (to.port > latency / 2)
      in.refuse(in.needed("port_ns"), "port_ns", "at most half of network.latency_ns");
  }
  in.finish();
}

// Only where it is known what a call costs beside its operations.
void read_library(reader in, library_profile& to) {
  to.acquire = ns(in, "acquire_ns");
  to.release = ns(in, "release_ns");
  to.access = ns(in, "access_ns");
  in.finish();
}

void read_messages(reader in, message_profile& to) {
  to.send = ns(in, "send_ns");
  to.receive = ns(in, "receive_ns");
  if (in.has("receive_rank_ns")) to.receive_rank = ns(in, "receive_rank_ns");
  if (in.has("serve_ns")) to.serve = ns(in, "serve_ns");
  if (in.has("confirmed")) to.confirmed = in.flag("confirmed");
  in.finish();
}

void replace(toml::table& root, const replaced_numbers& instead) {
  for (const auto& [name, value] : instead) {
    const std::size_t dot = name.find('.');
    toml::table* const in = dot == std::string::npos ? &root : root[name.substr(0, dot)].as_table();
    const std::string key = dot == std::string::npos ? name : name.substr(dot + 1);
    if (in == nullptr || !in->contains(key) || !(*in)[key].is_number())
      throw bad_replacement(fmt::format(
          "'{}={}' (accepted: a number of the machine file, as table.key)", name, value));
    // A number beyond 2^53 is no time or size of a machine; it stays what it is, for the message.
    constexpr double most_exact = 9007199254740992.0;
    if (value == std::trunc(value) && std::abs(value) <= most_exact && (*in)[key].is_integer())
      in->insert_or_assign(key, static_cast<std::int64_t>(value));
    else
      in->insert_or_assign(key, value);
  }
}

}  // namespace

machine_profile parse_machine(std::string_view text, const std::string& path,
                              const replaced_numbers& instead) {
  toml::table root = strict_toml::parsed<bad_machine>(text, path);
  replace(root, instead);
  machine_profile made;
  reader in(root, path);
  in.may_have_notes(source_suffix);
  read_nodes(open_table(in, "node"), made);
  read_cpu(open_table(in, "cpu"), made.cpu);
  read_nic(open_table(in, "nic"), made.nic);
  read_network(open_table(in, "network"), made.network, made.nodes);
  if (in.has("memory"))
    read_memory(open_table(in, "memory"), made.memory, made.nodes, made.network.latency);
  read_messages(open_table(in, "messages"), made.messages);
  if (in.has("library")) read_library(open_table(in, "library"), made.library);
  made.name = in.text("name");
  made.what = in.text("what");
  made.jitter = in.number("jitter", 0, 0.5);
  in.finish();
  return made;
}

machine_profile read_machine(const std::string& path, const replaced_numbers& instead) {
  constexpr std::size_t most_bytes = std::size_t{1} << 24;
  return parse_machine(whole_file(path, most_bytes), path, instead);
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
