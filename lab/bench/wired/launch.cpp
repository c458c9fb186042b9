#include "lab/bench/wired/launch.hpp"

namespace lockflight::bench {

launch::diagnosis diagnosis_of(const wired::findings& f) {
  launch::diagnosis found;
  found.usable = f.fetch_add_atomic && f.compare_swap_atomic;
  const std::string lost = "no: some were lost";
  found.findings = {{"library", f.library},
                    {"transports", f.transports},
                    {"atomics", f.atomics},
                    {"ranks", std::to_string(f.ranks) + " on " + std::to_string(f.hosts_count) +
                                  (f.hosts_count == 1 ? " host, " : " hosts, ") +
                                  std::to_string(f.cores) + " cores on the first"},
                    {"fetch-add atomic", f.fetch_add_atomic ? "yes" : lost},
                    {"compare-swap atomic", f.compare_swap_atomic ? "yes" : lost}};
  const bool delays = add_hosts(found, f.hosts, wired::port::capabilities.ordered_posts);
  if (f.ranks == 1)
    found.advice.emplace_back(
        "Start at least two ranks to learn what an operation costs (LOCKFLIGHT_RENDEZVOUS, "
        "LOCKFLIGHT_RANK, LOCKFLIGHT_RANKS).");
  if (delays)
    found.advice.emplace_back(
        "A target that computes delays operations on its memory for as long as it computes, since "
        "its software does them. Place contended locks at ranks that wait, or have a thread for it "
        "(LOCKFLIGHT_PROGRESS=thread).");
  if (f.ranks > 1 && f.hosts_count == 1)
    found.advice.emplace_back(
        "All ranks are on one host: locks on a machine of one node use the network for messages "
        "alone.");
  return found;
}

}  // namespace lockflight::bench
