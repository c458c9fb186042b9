#include "lab/bench/oshmem/launch.hpp"

namespace lockflight::bench {

launch::diagnosis over_oshmem::diagnose(environment& in) {
  const oshmem::findings f = oshmem::probe(in);
  launch::diagnosis found;
  found.usable = f.fetch_add_atomic && f.compare_swap_atomic;
  const std::string lost = "no: some were lost";
  found.findings = {
      {"library", f.library},
      {"ranks", std::to_string(f.ranks) + " on " + std::to_string(f.hosts_count) +
                    (f.hosts_count == 1 ? " host, " : " hosts, ") + std::to_string(f.cores) +
                    " cores on the first"},
      {"fetch-add atomic", f.fetch_add_atomic ? "yes" : lost},
      {"compare-swap atomic", f.compare_swap_atomic ? "yes" : lost},
      {"atomic with the CPU's",
       f.with_cpu.empty() ? "not tried: shmem_ptr reaches no other rank" : f.with_cpu}};
  const bool delays = add_hosts(found, f.hosts, oshmem::port::capabilities.ordered_posts);
  if (f.ranks == 1)
    found.advice.push_back("Start at least two ranks to learn what an operation costs (oshrun).");
  if (delays)
    found.advice.push_back(
        "A target that computes delays operations on its memory for as long as it computes, since "
        "its software does them. Place contended locks at ranks that wait.");
  if (f.ranks > 1 && f.hosts_count == 1)
    found.advice.push_back(
        "All ranks are on one host: locks on a machine of one node use SHMEM for messages alone.");
  return found;
}

template class launch_over<over_oshmem>;

}  // namespace lockflight::bench
