#include "lab/bench/oshmem/launch.hpp"

#include "lab/bench/launched/diagnosis.hpp"

namespace lockflight::bench {

launch::diagnosis over_oshmem::diagnose(environment& in) {
  const oshmem::findings found = oshmem::probe(in);
  launch::diagnosis made = diagnosis_of(found, oshmem::port::capabilities.ordered_posts,
                                        {.launched_by = "oshrun", .own_node_uses = "SHMEM"});
  made.findings.emplace_back(
      "atomic with the CPU's",
      found.with_cpu.empty() ? "not tried: shmem_ptr reaches no other rank" : found.with_cpu);
  return made;
}

template class launch_over<over_oshmem>;

}  // namespace lockflight::bench
