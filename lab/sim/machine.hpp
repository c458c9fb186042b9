// A machine file: the costs of a cluster's operations. docs/simulator.md has the formulas that use
// these numbers.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lab/sim/time.hpp"

namespace lockflight::sim {

/// A machine file that cannot be used: one line with the file, the line in it, the key, its value
/// and what is accepted.
struct bad_machine : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// How nodes are wired, which says how many hops lie between two of them.
enum class shape : std::uint8_t {
  flat,       ///< every node is one hop from every other
  torus,      ///< a grid whose edges wrap around; hops along each dimension add up
  mesh,       ///< the same without wrapping
  fat_tree,   ///< hops go up to the common switch and down again
  dragonfly,  ///< groups of routers, all joined in a group, and all groups joined
};

/// The operation that goes first where several meet on their way to a busy card.
enum class arbitration : std::uint8_t {
  arrival,  ///< the one that arrived at the card first
  turns,    ///< at each router one from each input, round robin, however many wait behind it
};

/// The nodes of a machine and the network between them.
struct network_profile {
  shape wiring = shape::flat;
  /// torus, mesh: the extents. fat-tree: fan-outs from the root down. dragonfly: groups, routers of
  /// a group, nodes of a router. Nodes are numbered along the last dimension first.
  std::vector<std::uint32_t> dimensions;
  time_ps latency = 0;  ///< one way, without the hops
  time_ps hop = 0;
  double byte_ps = 0;    ///< of each byte that is carried
  time_ps link_gap = 0;  ///< between two operations on one link; 0: links have no limit
  arbitration arbiter = arbitration::arrival;
};

/// The part of a node that does posted operations on cells of the own node.
enum class own_node : std::uint8_t {
  card,   ///< the network interface: loopback
  cells,  ///< the processor those on cpu and plain cells, the interface those on nic cells
  all,    ///< the processor
};

/// The network interface of a node.
struct nic_profile {
  time_ps post = 0;         ///< the CPU's time to post one operation
  time_ps complete = 0;     ///< and to notice a completion
  time_ps gap = 0;          ///< between two injections by one engine
  time_ps receive_gap = 0;  ///< between two receptions
  time_ps memory = 0;       ///< from the interface to the target's memory
  time_ps put = 0;          ///< of a put in addition: it carries an immediate value
  time_ps atomic = 0;       ///< in the atomic unit
  time_ps atomic_cell = 0;  ///< between two atomics on one cache line
  std::uint32_t atomic_engines = 1;
  std::uint32_t injection_engines = 1;
  time_ps loopback = 0;              ///< one way, in place of the network's latency
  std::uint32_t loopback_slots = 0;  ///< in flight before buffers congest; 0: any number
  time_ps loopback_congested = 0;    ///< added by each one beyond them
  std::uint32_t connections = 0;     ///< contexts of connections that the card can hold; 0: all
  time_ps connection_miss = 0;       ///< to fetch one
  own_node own = own_node::card;
  bool ordered_posts = false;  ///< operations to one rank take effect in the order of posting
};

/// The processors of a node and its caches; costs are of one cache line.
struct cpu_profile {
  time_ps hit = 0;              ///< load or store of a cache line that the core has
  time_ps rmw = 0;              ///< atomic on a cache line that only this core has
  time_ps socket_transfer = 0;  ///< the cache line comes from a core of the same socket
  time_ps node_transfer = 0;    ///< from another socket
  time_ps dma_transfer = 0;     ///< a network interface wrote it last
  time_ps mesh_hop = 0;         ///< on a many-core: added for each hop between two cores
  time_ps wake = 0;             ///< until a rank that waits for a cell goes on, beside the transfer
  time_ps slice = 0;            ///< of a core that busy processes share; 0: cores are not shared
};

/// Uncached memory behind controllers at a chip's mesh. Without controllers, nodes have memory of
/// their own, caches in front of it and a network interface.
struct memory_profile {
  std::vector<std::uint32_t> controllers;  ///< the nodes beside which they are
  time_ps controller = 0;                  ///< of one access; a controller serves one at a time
  time_ps read = 0;                        ///< the memory's latency; a write does not wait for it
  std::uint32_t word_accesses = 1;         ///< accesses of a put or a get of one word
  std::uint32_t tile_nodes = 1;            ///< neighbours that share a port to the mesh
  time_ps port = 0;                        ///< of one passage through it
};

struct message_profile {
  time_ps send = 0;          ///< the sender's CPU
  time_ps receive = 0;       ///< the receiver's
  time_ps receive_rank = 0;  ///< added to it for each rank of the run
  time_ps serve = 0;         ///< the receiver's in addition, if it has a handler
  bool confirmed = false;    ///< the sender receives nothing before its messages are confirmed
};

/// The library's use of the caller's CPU beside the operations that a call consists of.
struct library_profile {
  time_ps acquire = 0;  ///< of a call that acquires a lock
  time_ps release = 0;  ///< of a call that releases one
  time_ps access = 0;   ///< of a put or a get in a critical section
};

/// A machine, as its file describes it.
struct machine_profile {
  std::string name;
  std::string what;
  std::uint32_t cores = 1;    ///< of a node
  std::uint32_t sockets = 1;  ///< of a node
  std::uint32_t nodes = 1;
  cpu_profile cpu;
  nic_profile nic;
  network_profile network;
  memory_profile memory;
  message_profile messages;
  library_profile library;
  /// Each route, transfer and pause takes up to this fraction of it more or less, by chance.
  double jitter = 0;

  [[nodiscard]] std::uint64_t ranks() const { return std::uint64_t{cores} * nodes; }
};

/// A replacement for a number that the machine file does not have.
struct bad_replacement : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// Numbers of a machine file to replace, by "table.key".
using replaced_numbers = std::map<std::string, double>;

/// Reads a machine file. Throws bad_machine or bad_replacement; std::system_error if it cannot be
/// read.
[[nodiscard]] machine_profile read_machine(const std::string& path,
                                           const replaced_numbers& instead = {});

/// The same from text; `path` is for errors.
[[nodiscard]] machine_profile parse_machine(std::string_view text, const std::string& path,
                                            const replaced_numbers& instead = {});

/// A machine file that is part of the program.
struct built_in_machine {
  std::string_view name;
  std::string_view text;
};

/// The machines of lab/machines/, by name. Generated (CMakeLists.txt).
[[nodiscard]] const std::vector<built_in_machine>& built_in_machines();

/// The names of the machines.
[[nodiscard]] std::vector<std::string> names_of_machines();

/// The machine of a name or a path: a file, or, if there is none of that name, a machine that is
/// part of the program. Throws bad_machine, also if it is neither, or bad_replacement.
[[nodiscard]] machine_profile find_machine(const std::string& name_or_path,
                                           const replaced_numbers& instead = {});

}  // namespace lockflight::sim
