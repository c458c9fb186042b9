// Running participants in the simulator.
#pragma once

#include "lab/sim/engine.hpp"
#include "lab/sim/port.hpp"

namespace lockflight::sim {

/// Calls `body(port&)` on every rank of the machine, each in a fiber of its own, until all have
/// returned. `watch` is called a few times a second of real time; what it throws ends the run.
/// Throws rank_failed if a rank fails, or if none can continue; std::invalid_argument if the
/// machine of `what` does not fit its profile.
template <class Body>
void run_ports(const setting& what, Body body, const std::function<void()>& watch = nullptr) {
  engine all(what);
  all.run(
      [&](rank_t rank) {
        port p(all, rank);
        body(p);
      },
      watch);
}

}  // namespace lockflight::sim
