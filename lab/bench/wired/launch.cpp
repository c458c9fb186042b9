#include "lab/bench/wired/launch.hpp"

#include "lab/bench/launched/diagnosis.hpp"

namespace lockflight::bench {

launch::diagnosis diagnosis_of(const wired::findings& found) {
  return diagnosis_of(found, wired::port::capabilities.ordered_posts,
                      {.rows = {{"transports", found.transports}, {"atomics", found.atomics}},
                       .launched_by = "LOCKFLIGHT_RENDEZVOUS, LOCKFLIGHT_RANK, LOCKFLIGHT_RANKS",
                       .own_node_uses = "the network",
                       .helps_targets = ", or have a thread for it (LOCKFLIGHT_PROGRESS=thread)"});
}

}  // namespace lockflight::bench
