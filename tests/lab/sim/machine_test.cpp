// Machine files: what is read, and what is refused with the file, the line and the key.
#include "lab/sim/machine.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>

#include "tests/support/damaged.hpp"

namespace lockflight::sim {
namespace {

const std::string good = R"(name = "small"
what = "a machine"
jitter = 0.1
[node]
cores = 8
cores_source = "a book"
sockets = 2
nodes = 12
[cpu]
hit_ns = 1.5
rmw_ns = 6
socket_transfer_ns = 30
node_transfer_ns = 90
dma_transfer_ns = 80
mesh_hop_ns = 0
[nic]
post_ns = 100
complete_ns = 50
gap_ns = 20
receive_gap_ns = 25
memory_ns = 200
atomic_ns = 60
atomic_cell_ns = 70
atomic_engines = 2
injection_engines = 3
loopback_ns = 500
loopback_slots = 16
loopback_congested_ns = 9
connections = 400
connection_miss_ns = 700
[network]
shape = "torus"
dimensions = [3, 4]
latency_ns = 700
hop_ns = 0.123456
byte_ns = 0.1
[messages]
send_ns = 300
receive_ns = 400
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = good;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string complaint(const std::string& text) {
  try {
    static_cast<void>(parse_machine(text, "m.toml"));
  } catch (const bad_machine& e) {
    return e.what();
  }
  return "none";
}

TEST(machine, is_read) {
  const machine_profile m = parse_machine(good, "m.toml");
  EXPECT_EQ(m.name, "small");
  EXPECT_EQ(m.what, "a machine");
  EXPECT_EQ(m.jitter, 0.1);
  EXPECT_EQ(m.ranks(), 96);
  EXPECT_EQ(m.sockets, 2);
  EXPECT_EQ(m.cpu.hit, 1'500);
  EXPECT_EQ(m.nic.atomic_engines, 2);
  EXPECT_EQ(m.nic.connection_miss, 700'000);
  EXPECT_EQ(m.network.wiring, shape::torus);
  EXPECT_EQ(m.network.dimensions, (std::vector<std::uint32_t>{3, 4}));
  EXPECT_EQ(m.network.hop, 123);  // picoseconds
  EXPECT_EQ(m.network.byte_ps, 100);
  EXPECT_EQ(m.messages.receive, 400'000);
}

// A machine without the optional keys.
TEST(machine, what_need_not_be_there_is_nothing) {
  const machine_profile m = parse_machine(good, "m.toml");
  EXPECT_TRUE(m.memory.controllers.empty());
  EXPECT_EQ(m.cpu.slice, 0);
  EXPECT_EQ(m.cpu.wake, 0);
  EXPECT_EQ(m.nic.own, own_node::card);
  EXPECT_FALSE(m.nic.ordered_posts);
  EXPECT_EQ(m.nic.put, 0);
  EXPECT_EQ(m.messages.serve, 0);
  EXPECT_FALSE(m.messages.confirmed);
  EXPECT_EQ(m.network.link_gap, 0);
  EXPECT_EQ(m.network.arbiter, arbitration::arrival);
}

const std::string controllers =
    "[memory]\ncontrollers = [0, 11]\ncontroller_ns = 20\nread_ns = 115\nword_accesses = 2\n";

TEST(machine, what_need_not_be_there_is_read) {
  const machine_profile m = parse_machine(
      with("mesh_hop_ns = 0\n", "mesh_hop_ns = 0\nslice_ns = 5000\nwake_ns = 3\n") + controllers,
      "m.toml");
  EXPECT_EQ(m.cpu.wake, 3'000);
  EXPECT_EQ(m.cpu.slice, 5'000'000);
  EXPECT_EQ(m.memory.controllers, (std::vector<std::uint32_t>{0, 11}));
  EXPECT_EQ(m.memory.controller, 20'000);
  EXPECT_EQ(m.memory.read, 115'000);
  EXPECT_EQ(m.memory.word_accesses, 2);
  EXPECT_EQ(m.memory.tile_nodes, 1u);
  EXPECT_EQ(m.memory.port, 0);
  EXPECT_EQ(m.messages.receive_rank, 0);
  EXPECT_EQ(m.library.acquire + m.library.release + m.library.access, 0);
  const std::string library = "[library]\nacquire_ns = 900\nrelease_ns = 800\naccess_ns = 1500\n";
  const machine_profile scc =
      parse_machine(with("[messages]\n", "[messages]\nreceive_rank_ns = 125\n") + controllers +
                        "tile_nodes = 2\nport_ns = 11.5\n" + library,
                    "m.toml");
  EXPECT_EQ(scc.memory.tile_nodes, 2u);
  EXPECT_EQ(scc.memory.port, 11'500);
  EXPECT_EQ(scc.messages.receive_rank, 125'000);
  EXPECT_EQ(scc.library.acquire, 900'000);
  EXPECT_EQ(scc.library.release, 800'000);
  EXPECT_EQ(scc.library.access, 1'500'000);
  EXPECT_NE(complaint(good + "[library]\nacquire_ns = 900\n").find("library.release_ns is missing"),
            std::string::npos);
  const machine_profile full = parse_machine(
      with("byte_ns = 0.1\n", "byte_ns = 0.1\nlink_gap_ns = 7\narbitration = \"turns\"\n"),
      "m.toml");
  EXPECT_EQ(full.network.link_gap, 7'000);
  EXPECT_EQ(full.network.arbiter, arbitration::turns);
  const std::string last = "connection_miss_ns = 700\n";
  const machine_profile ordered =
      parse_machine(with(last, last + "ordered_posts = true\n"), "m.toml");
  EXPECT_TRUE(ordered.nic.ordered_posts);
  EXPECT_EQ(complaint(with(last, last + "ordered_posts = 1\n")),
            "m.toml:31: nic.ordered_posts '1' (accepted: true or false)");
  EXPECT_EQ(parse_machine(with(last, last + "own_node = \"cells\"\n"), "m.toml").nic.own,
            own_node::cells);
  EXPECT_EQ(parse_machine(with(last, last + "own_node = \"all\"\n"), "m.toml").nic.own,
            own_node::all);
  EXPECT_EQ(complaint(with(last, last + "own_node = \"us\"\n")),
            "m.toml:31: nic.own_node 'us' (accepted: card, cells, all)");
  EXPECT_EQ(parse_machine(with(last, last + "put_ns = 8\n"), "m.toml").nic.put, 8'000);
  const machine_profile confirmed =
      parse_machine(good + "serve_ns = 9\nconfirmed = true\n", "m.toml");
  EXPECT_EQ(confirmed.messages.serve, 9'000);
  EXPECT_TRUE(confirmed.messages.confirmed);
  EXPECT_EQ(complaint(good + "confirmed = 1\n"),
            "m.toml:40: messages.confirmed '1' (accepted: true or false)");
}

TEST(machine, controllers_that_cannot_be_are_refused) {
  const auto refused = [](const std::string& from, const std::string& to) {
    std::string text = controllers;
    return complaint(good + text.replace(text.find(from), from.size(), to));
  };
  const struct {
    std::string from, to, says;
  } cases[] = {
      {"[0, 11]", "[0, 12]",
       "m.toml:41: memory.controllers '12' (accepted: a whole number, 0 to 11"},
      {"[0, 11]", "[]", "m.toml:41: memory.controllers '[]' (accepted: an array of whole numbers)"},
      {"= 20", "= 0", "m.toml:42: memory.controller_ns '0' (accepted: 0.001 to"},
      {"read_ns = 115\n", "", "memory.read_ns is missing"},
      {"= 2\n", "= 0\n", "m.toml:44: memory.word_accesses '0' (accepted: a whole number, 1 to 64"},
      {"[memory]", "[memory]\nbanks = 4", "m.toml:41: unknown key 'memory.banks'"},
      {"= 2\n", "= 2\ntile_nodes = 0\n",
       "memory.tile_nodes '0' (accepted: a whole number, 1 to 12"},
      {"= 2\n", "= 2\nport_ns = -1\n", "memory.port_ns '-1' (accepted: 0 to"},
      {"= 2\n", "= 2\nport_ns = 9999\n",
       "memory.port_ns '9999' (accepted: at most half of network.latency_ns)"},
  };
  for (const auto& each : cases)
    EXPECT_NE(refused(each.from, each.to).find(each.says), std::string::npos)
        << refused(each.from, each.to) << "\nexpected: " << each.says;
}

TEST(machine, refusals_name_the_line_the_key_and_what_is_accepted) {
  const struct {
    std::string from, to, says;
  } cases[] = {
      {"sockets = 2", "sockets = 2\nspeed = 3", "m.toml:8: unknown key 'node.speed'"},
      {"hit_ns = 1.5", "hit_ns = -1", "m.toml:10: cpu.hit_ns '-1' (accepted: 0.001 to"},
      {"hit_ns = 1.5", "hit_ns = \"fast\"", "m.toml:10: cpu.hit_ns 'fast' (accepted: 0.001"},
      {"hit_ns = 1.5", "hit_ns = nan", "m.toml:10: cpu.hit_ns 'nan' (accepted: 0.001"},
      {"gap_ns = 20\n", "", "nic.gap_ns is missing"},
      {"[messages]", "[mail]", "[messages] is missing"},
      {"sockets = 2", "sockets = 3", "m.toml:7: node.sockets '3' (accepted: a divisor of the 8"},
      {"nodes = 12", "nodes = 0", "m.toml:8: node.nodes '0' (accepted: a whole number, 1 to"},
      {"nodes = 12", "nodes = 1.5", "m.toml:8: node.nodes '1.5' (accepted: a whole number"},
      {"nodes = 12", "nodes = 13", "network.dimensions have room for 12 nodes (accepted: at least"},
      {"\"torus\"", "\"ring\"", "m.toml:32: network.shape 'ring' (accepted: flat, torus, mesh"},
      {"\"torus\"", "\"dragonfly\"", "network.dimensions '[ 3, 4 ]' (accepted: groups, routers"},
      {"[3, 4]", "[]", "network.dimensions '[]' (accepted: an array of whole numbers)"},
      {"[3, 4]", "[3, -4]", "network.dimensions '-4' (accepted: a whole number"},
      {"byte_ns = 0.1", "byte_ns = 0.1\nlink_gap_ns = -1",
       "m.toml:37: network.link_gap_ns '-1' (accepted: 0 to"},
      {"byte_ns = 0.1", "byte_ns = 0.1\narbitration = \"luck\"",
       "m.toml:37: network.arbitration 'luck' (accepted: arrival, turns)"},
      {"shape = \"torus\"", "shape = \"flat\"\nlink_gap_ns = 1",
       "m.toml:33: network.link_gap_ns '1' (accepted: with shape torus, mesh or dragonfly only)"},
      {"shape = \"torus\"", "shape = \"fat-tree\"\narbitration = \"turns\"",
       "m.toml:33: network.arbitration 'turns' (accepted: with shape torus, mesh or dragonfly "
       "only)"},
      {"mesh_hop_ns = 0", "mesh_hop_ns = 0\nslice_ns = 0",
       "m.toml:16: cpu.slice_ns '0' (accepted: 1 to"},
      {"jitter = 0.1", "jitter = 0.7", "m.toml:3: jitter '0.7' (accepted: 0 to 0.5)"},
      {"[node]", "[node", "m.toml:4: "},
      {"[node]", "node = 4\n[nodes]", "node '4' (accepted: a table)"},
      {"cores_source = \"a book\"", "cores_source = 4", "unknown key 'node.cores_source'"},
  };
  for (const auto& each : cases)
    EXPECT_NE(complaint(with(each.from, each.to)).find(each.says), std::string::npos)
        << complaint(with(each.from, each.to)) << "\nexpected: " << each.says;
}

TEST(machine, a_file_that_is_not_there_is_an_error_of_the_system) {
  EXPECT_THROW(static_cast<void>(read_machine("/nowhere/m.toml")), std::system_error);
}

// Any file is read or refused.
TEST(machine, nothing_else_comes_out_of_broken_files) {
  std::minstd_rand random(1);
  int refused = 0;
  for (int i = 0; i < 3'000; ++i) {
    refused += complaint(test::damaged(good, random)) != "none" ? 1 : 0;
  }
  EXPECT_GT(refused, 1'000);
}

// The machines that come with the tree.
TEST(machine, all_of_the_tree_are_good) {
  const char* const root = std::getenv("LOCKFLIGHT_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  int read = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(root) + "/lab/machines")) {
    if (file.path().extension() != ".toml") continue;
    const machine_profile m = read_machine(file.path().string());
    EXPECT_EQ(m.name, file.path().stem().string());
    ++read;
  }
  EXPECT_GE(read, 8);
}

}  // namespace
}  // namespace lockflight::sim
