// The simulator as a fabric of the suites.
#pragma once

#include <array>

#include "lab/sim/run.hpp"
#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/strict.hpp"
#include "tests/support/made_up_machine.hpp"
#include "tests/support/modes.hpp"

namespace lockflight::test {

/// The machines that the suites run on.
inline constexpr std::array sim_modes{
    mode{.name = "cluster"},
    mode{.name = "many-core", .many_core = true},
    mode{.name = "full-links", .full_links = true},
};

/// Routes that take more or less time by chance, so that operations overtake each other.
struct sim_fabric {
  static constexpr const char* name = "sim";
  static constexpr bool shares_memory = true;  // ranks are fibers of this process
  using port_type = fabric::counting<fabric::strict<sim::port>>;

  template <class Body>
  static void run(const rma::topology& machine, Body body) {
    auto profile = mode_now().many_core    ? made_up_many_core()
                   : mode_now().full_links ? made_up_torus()
                                           : made_up_machine();
    profile.jitter = 0.3;
    // The others let operations to one rank overtake each other.
    profile.nic.ordered_posts = mode_now().many_core || mode_now().full_links;
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
