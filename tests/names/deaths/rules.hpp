// The record of a campaign, the rules that are checked when it is over, and the summary. The
// workers check the rules about torn data and tokens themselves (worker.cpp).
#pragma once

#include <array>
#include <cstdint>

#include "tests/names/deaths/options.hpp"
#include "tests/names/deaths/shared_state.hpp"
#include "tests/names/deaths/worker_pool.hpp"

namespace lockflight::test {

/// The disturbances so far, and the deaths of which a later holder should or may be told.
struct campaign_record {
  int kills = 0, exits = 0, orders = 0, stops = 0, long_stops = 0, removals = 0;
  /// The exclusive users of each lock that died as holders, and those that died just before or
  /// after, which the shared state cannot tell from holders.
  std::array<std::uint64_t, most_locks> inside{}, perhaps{};
  std::uint64_t died_inside = 0;  ///< the sum of `inside`
  std::uint64_t told = 0;         ///< the holders that saw owner_died()

  /// Records the position of a dead worker, before another one has its place.
  void note_death(worker_state& its);
};

/// Checks all rules when the workers have ended, and removes the domain.
void judge(const campaign_options& options, const worker_pool& workers, campaign_record& record);

void print_summary(const campaign_options& options, const shared_state& all,
                   const campaign_record& record);

}  // namespace lockflight::test
