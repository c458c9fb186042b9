// The simulator as a fabric of the suites.
#pragma once

#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/strict.hpp"
#include "sim/run.hpp"
#include "support/made_up_machine.hpp"

namespace lockflight::test {

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
