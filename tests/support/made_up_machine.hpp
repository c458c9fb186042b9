// A simulated machine for tests, whose costs are round numbers.
#pragma once

#include "lab/sim/machine.hpp"

namespace lockflight::test {

/// All costs differ, so that a test can tell which were paid.
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
          .memory = {},
          .messages = {.send = 300'000, .receive = 400'000},
          .library = {},
          .jitter = 0};
}

/// The same without caches and cards: memory behind two controllers, at the ends of a row of nodes.
inline sim::machine_profile made_up_many_core() {
  sim::machine_profile made = made_up_machine();
  made.network.wiring = sim::shape::mesh;
  made.network.dimensions = {1024};
  made.memory = {
      .controllers = {0, 1023}, .controller = 20'000, .read = 150'000, .word_accesses = 2};
  return made;
}

/// The same in rings, whose links have a capacity and whose routers serve their inputs round robin.
inline sim::machine_profile made_up_torus() {
  sim::machine_profile made = made_up_machine();
  made.network.wiring = sim::shape::torus;
  made.network.dimensions = {128, 8};
  made.network.link_gap = 15'000;
  made.network.arbiter = sim::arbitration::turns;
  return made;
}

}  // namespace lockflight::test
