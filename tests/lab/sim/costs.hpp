// The common parts of the tests of costs in virtual time: the round numbers of a made-up machine,
// and ways to run a few ranks on it. Times are in nanoseconds; docs/simulator.md has the formulas.
#pragma once

#include <functional>
#include <map>

#include "lab/sim/run.hpp"
#include "lockflight/rma/participant.hpp"
#include "tests/support/made_up_machine.hpp"

namespace lockflight::test {

using rma::cpu_cell;
using rma::nic_cell;
using rma::plain_cell;
using rma::word;
using sim::machine_profile;

// made_up_machine(), in nanoseconds.
inline constexpr double post = 100, complete = 30, receive_gap = 25, to_memory = 200, atomic = 50,
                        atomic_cell = 60, loopback = 500, way = 700 + 110, hit = 1, rmw = 10,
                        socket_transfer = 40, node_transfer = 90, dma_transfer = 70, send = 300,
                        receive = 400;

inline double ns(sim::time_ps t) { return static_cast<double>(t) * 1e-3; }

using port_list = std::map<rma::rank_t, std::function<void(sim::port&)>>;

/// Runs the given body of each rank; the other ranks do nothing.
inline void play(const rma::topology& machine, const port_list& parts,
                 const machine_profile& profile = made_up_machine()) {
  sim::run_ports({.profile = profile, .machine = machine, .words_per_rank = 4096},
                 [&](sim::port& p) {
                   if (const auto at = parts.find(p.rank()); at != parts.end()) at->second(p);
                 });
}

/// How long `body` takes rank 0 on `machine`.
inline double duration(const rma::topology& machine, const std::function<void(sim::port&)>& body,
                       const machine_profile& profile = made_up_machine()) {
  double took = -1;
  play(machine,
       {{0,
         [&](sim::port& p) {
           const sim::time_ps begun = p.now();
           body(p);
           took = ns(p.now() - begun);
         }}},
       profile);
  return took;
}

/// When the last of n ranks on nodes of their own is done, each with one fetch-add at the same
/// time: the unit takes them one after the other.
inline double last_of(int n, const std::function<nic_cell(int)>& target,
                      const machine_profile& profile = made_up_machine()) {
  port_list parts;
  double last = 0;
  for (int r = 1; r <= n; ++r)
    parts[r] = [&last, &target, r](sim::port& p) {
      std::ignore = rma::fetch_add_now(p, target(r), 1);
      last = std::max(last, ns(p.now()));
    };
  play(rma::topology::balanced({n + 1, 1}), parts, profile);
  return last;
}

inline const rma::topology two_nodes = rma::topology::balanced({2, 1});
inline constexpr plain_cell far{1, 8};
inline constexpr nic_cell far_nic{1, 16};

}  // namespace lockflight::test
