#include "bench/sim/entries.hpp"

#include <algorithm>

namespace lockflight::bench {

const sim_entry* sim_entry_of(std::string_view lock) {
  const auto& all = sim_entries();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const sim_entry& e) { return e.lock == lock; });
  return at == all.end() ? nullptr : &*at;
}

rma::topology machine_on(const sim::machine_profile& profile, int procs) {
  const int cores = static_cast<int>(profile.cores);
  if (procs <= cores) return rma::topology::flat(procs);
  const auto ranks = static_cast<std::size_t>(procs);
  std::vector<std::vector<int>> element_of{std::vector<int>(ranks), std::vector<int>(ranks)};
  for (int r = 0; r < procs; ++r) element_of[1][static_cast<std::size_t>(r)] = r / cores;
  return {std::move(element_of), 2};
}

}  // namespace lockflight::bench
