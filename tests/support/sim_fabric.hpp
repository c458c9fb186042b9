// The simulator as a fabric of the suites: a machine made up for them, whose costs are round
// numbers.
#pragma once

#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/strict.hpp"
#include "sim/run.hpp"

namespace lockflight::test {

/// Every cost is another, so that a test can tell which were paid.
inline sim::machine_profile made_up_machine() {
  return {.name = "made-up",
          .what = "for tests",
          .cores = 64,
          .sockets = 2,
          .nodes = 1024,
          .cpu = {.hit = 1'000,
                  .rmw = 10'000,
                  .socket_transfer = 40'000,
                  .node_transfer = 90'000,
                  .dma_transfer = 70'000,
                  .mesh_hop = 0},
          .nic = {.post = 100'000,
                  .complete = 30'000,
                  .gap = 20'000,
                  .receive_gap = 25'000,
                  .memory = 200'000,
                  .atomic = 50'000,
                  .atomic_cell = 60'000,
                  .atomic_engines = 1,
                  .injection_engines = 1,
                  .loopback = 500'000,
                  .loopback_slots = 0,
                  .loopback_congested = 0,
                  .connections = 0,
                  .connection_miss = 0},
          .network = {.wiring = sim::shape::flat,
                      .dimensions = {},
                      .latency = 700'000,
                      .hop = 110'000,
                      .byte_ps = 0},
          .messages = {.send = 300'000, .receive = 400'000},
          .jitter = 0};
}

/// Ways that are longer or shorter by chance, so that operations overtake each other.
struct sim_fabric {
  static constexpr const char* name = "sim";
  static constexpr bool shares_memory = true;  // ranks are fibers of this process
  using port_type = fabric::counting<fabric::strict<sim::port>>;

  template <class Body>
  static void run(const rma::topology& machine, Body body) {
    static const sim::machine_profile profile = [] {
      auto made = made_up_machine();
      made.jitter = 0.3;
      return made;
    }();
    const sim::setting what{.profile = profile, .machine = machine, .seed = seed()};
    sim::run_ports(what, [&](sim::port& bare) {
      fabric::strict<sim::port> strict(bare);
      port_type p(strict);
      rma::participant<port_type> me(p, what.words_per_rank);
      body(me);
    });
  }
};

}  // namespace lockflight::test
