#include "lab/bench/fit/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lab/bench/fit/costs.hpp"

namespace lockflight::bench {
namespace {

/// A machine file, key by key, each with the measurement that it is from.
class machine_file {
 public:
  void table(std::string_view name) { text_ += fmt::format("\n[{}]\n", name); }
  void word(std::string_view key, std::string_view is) {
    text_ += fmt::format("{} = \"{}\"\n", key, is);
  }
  void count(std::string_view key, int is, std::string_view source) {
    text_ += fmt::format("{0} = {1}\n{0}_source = \"{2}\"\n", key, is, source);
  }
  void number(std::string_view key, double is, std::string_view source) {
    text_ += fmt::format("{0} = {1:.4g}\n{0}_source = \"{2}\"\n", key, is, source);
  }
  [[nodiscard]] std::string& text() { return text_; }

 private:
  std::string text_;
};

/// The least time of an operation in a machine file, so that no operation takes no time.
constexpr double least_ns = 0.1;

/// The costs of a fit in the words of the simulator.
struct fitted {
  const costs& of;
  double same_cell_rate;  ///< of all far ranks together, in operations a second
  double own_cell_rate;

  /// The time of a round trip. If a fabric's gets take longer than its atomics, which locks use
  /// more, the time of the atomics is used. On one node there are no round trips, but the number
  /// must be more than 0.
  [[nodiscard]] double round() const {
    return std::max(std::min(of.far_get, of.far_fetch_add), 2 * least_ns);
  }
  [[nodiscard]] double post() const { return std::clamp(of.post, least_ns, round() / 2); }
  // The latency includes the origin's work when an answer comes, and the target's work for it.
  [[nodiscard]] double latency() const { return (round() - post()) / 2; }
  [[nodiscard]] double gap() const {
    constexpr int others = costs::several - 1;
    return std::clamp((of.far_several - of.far_fetch_add) / others, 0.0, of.far_fetch_add);
  }
  [[nodiscard]] double receive_gap() const {
    return own_cell_rate > 0 ? std::min(1e9 / own_cell_rate, round()) : 0;
  }
  [[nodiscard]] double atomic() const {
    return std::clamp(of.far_fetch_add - of.far_get, 0.0, receive_gap());
  }
  [[nodiscard]] double atomic_cell() const {
    const double apart = same_cell_rate > 0 ? std::min(1e9 / same_cell_rate, round()) : 0;
    return apart > receive_gap() ? apart : atomic();
  }
  [[nodiscard]] double transfer() const {
    constexpr double guess = 10;
    // The cell goes to and fro; where the two share a core it stays.
    return of.shared_rmw > 0 ? std::max(of.shared_rmw / 2 - of.rmw, 0.0) : guess * of.rmw;
  }
  [[nodiscard]] double wake() const { return std::max(of.near_handoff - transfer() - of.hit, 0.0); }
  [[nodiscard]] double dma_transfer() const {
    return std::max(of.far_handoff - post() - latency() - wake(), 0.0);
  }
  /// An operation of the processor takes some instructions, a library's takes hundreds.
  [[nodiscard]] bool is_the_processors(double took) const {
    constexpr double instructions = 5;
    constexpr double ns = 50;
    return took < instructions * of.rmw + ns;
  }
  [[nodiscard]] const char* own_node() const {
    if (!is_the_processors(of.own_get)) return "card";
    return is_the_processors(of.own_fetch_add) ? "all" : "cells";
  }
  [[nodiscard]] double loopback() const {
    return std::max((of.own_fetch_add - post() - atomic()) / 2, 0.0);
  }
  [[nodiscard]] double receive() const { return std::max(of.message - of.send - latency(), 0.0); }
  [[nodiscard]] double jitter() const { return std::clamp(of.far_spread, 0.01, 0.3); }
};

std::string written(const fitted& m, const std::string& fabric, const rma::topology& machine) {
  const auto ns = [](std::string_view what, double is) {
    return is > 0 ? fmt::format("measured: {}, {:.4g} ns", what, is)
                  : std::string("not measured: there is one node");
  };
  constexpr const char* one = "the fabric has one of them in a process";
  constexpr const char* none = "not measured: of no effect here";
  const costs& c = m.of;
  machine_file f;
  const bool one_node = machine.nodes() == 1;
  f.text() = fmt::format(
      "# Made by 'lockflight doctor --machine-out'. Medians; {}.\n",
      one_node ? "between two cores of one node" : "rank 0 is the target from another node");
  f.word("name", fmt::format("fitted-{}", fabric));
  f.word("what", fmt::format("fabric {}, {} ranks on {} nodes, as it was when this was measured",
                             fabric, machine.ranks(), machine.nodes()));
  f.number("jitter", m.jitter(),
           one_node ? "estimate: a quiet machine"
                    : "measured: of a get from another node, within its middle half");
  f.table("node");
  f.count("cores", machine.largest_node(), "the ranks of a node");
  f.count("sockets", 1, "not distinguished");
  f.count("nodes", machine.nodes(), "the nodes of the launch");
  f.table("cpu");
  f.number("hit_ns", std::max(c.hit, least_ns), "measured: a load of a cell that the core has");
  f.number("rmw_ns", std::max(c.rmw, least_ns), "measured: an atomic on one");
  f.number("socket_transfer_ns", m.transfer(),
           c.shared_rmw > 0 ? ns("an atomic, while another rank of the node does them on that cell",
                                 c.shared_rmw)
                            : "estimate: ten atomics; there is one rank on a node");
  f.number("node_transfer_ns", m.transfer(), "as socket_transfer_ns");
  f.number("dma_transfer_ns", m.dma_transfer(),
           ns("a put from another node, until the rank that awaits it has seen it", c.far_handoff));
  f.number("wake_ns", m.wake(),
           ns("a put, until a rank of the node that awaits it has seen it", c.near_handoff));
  f.number("mesh_hop_ns", 0, none);
  f.table("nic");
  f.word("own_node", m.own_node());
  f.text() += fmt::format(
      "own_node_source = \"measured: on the own rank a get takes {:.4g} ns, a "
      "fetch-add on a nic cell {:.4g} ns\"\n",
      c.own_get, c.own_fetch_add);
  f.number("post_ns", m.post(),
           one_node ? none : fmt::format("measured: of {} fetch-adds in a row", c.several));
  f.number("complete_ns", 0, "in latency_ns");
  f.number("gap_ns", m.gap(), ns(fmt::format("{} fetch-adds together", c.several), c.far_several));
  f.number("receive_gap_ns", m.receive_gap(),
           one_node ? none
                    : fmt::format("measured: all ranks of other nodes at once, each on a cell of "
                                  "its own, {:.4g} fetch-adds a second",
                                  m.own_cell_rate));
  f.number("memory_ns", 0, "in latency_ns");
  f.number("atomic_ns", m.atomic(), ns("a fetch-add, less a get", c.far_fetch_add));
  f.number("atomic_cell_ns", m.atomic_cell(),
           one_node ? none
                    : fmt::format("measured: all on one cell, {:.4g} fetch-adds a second",
                                  m.same_cell_rate));
  f.count("atomic_engines", 1, one);
  f.count("injection_engines", machine.largest_node(), "each process posts for itself");
  f.number("loopback_ns", m.loopback(), ns("a fetch-add on an own nic cell", c.own_fetch_add));
  f.count("loopback_slots", 0, none);
  f.number("loopback_congested_ns", 0, none);
  f.count("connections", 0, none);
  f.number("connection_miss_ns", 0, none);
  f.table("network");
  f.word("shape", "flat");
  f.number("latency_ns", m.latency(), ns("a get from another node", c.far_get));
  f.number("hop_ns", 0, "in latency_ns");
  f.number("byte_ns", 0, "not measured: all operations are on words");
  f.table("messages");
  f.number("send_ns", c.send, "measured: to send one");
  f.number("receive_ns", m.receive(),
           ns("a message, until it has been received, less its way", c.message));
  return f.text();
}

}  // namespace

void require_nodes_to_fit(launch& on, const std::string& path) {
  const rma::topology machine = on.machine(on.ranks());
  if (machine.nodes() > 1) return;
  throw bad_request(fmt::format(
      "--machine-out '{}': {} on one node (accepted: a launch with ranks on two nodes at least, "
      "since what is measured is the way from one to the other)",
      path, machine.ranks() == 1 ? "one rank" : fmt::format("{} ranks", machine.ranks())));
}

std::string fit_machine(launch& on) {
  const run_plan plan{.machine = on.machine(on.ranks())};
  const auto results = on.results(plan);
  on.run(measurement, plan, *results);
  static_assert(std::is_trivially_copyable_v<costs>);
  const costs& mine = found_costs();
  std::vector<costs> all;
  for (const auto& each : on.gather({reinterpret_cast<const char*>(&mine), sizeof mine}))
    std::memcpy(&all.emplace_back(), each.text.data(), sizeof(costs));
  fitted m{.of = all[static_cast<std::size_t>(measuring_rank(plan.machine))],
           .same_cell_rate = 0,
           .own_cell_rate = 0};
  for (const costs& each : all) {
    m.same_cell_rate += each.same_cell_rate;
    m.own_cell_rate += each.own_cell_rate;
  }
  return written(m, on.fabric(), plan.machine);
}

std::string fit_shared_memory(int cores) {
  const run_plan plan{.machine = rma::topology::flat(cores), .threads = true, .pin = true};
  const fitted m{.of = costs_on_shm(plan), .same_cell_rate = 0, .own_cell_rate = 0};
  return written(m, "shm", plan.machine);
}

}  // namespace lockflight::bench
