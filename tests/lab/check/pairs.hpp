// The least searches that use every way to acquire a lock: each way alone, and each beside each. A
// lock that gets another way, for example a timed one, is searched with it without further ado.
#pragma once

#include <string_view>
#include <vector>

#include "lab/check/check.hpp"

namespace lockflight::check {

/// Of two participants, on one node and on two; and of one participant, for the ways that only try.
/// With `deaths` of the robust lock, which is on one node.
[[nodiscard]] inline std::vector<request> pairs_of(const subject& lock, int deaths = 0) {
  std::vector<const part_row*> ways;
  for (const part_row& row : part_rows) {
    const bool upgrades = row.what == part::upgrader || row.what == part::upgrading_reader;
    if (lock.lacks(row.what) != nullptr || (row.what == part::reader && !lock.shared)) continue;
    if (deaths > 0 ? upgrades : row.what == part::abandoner) continue;
    ways.push_back(&row);
  }
  request empty;
  empty.lock = lock.about.name;
  empty.writers = 0;
  empty.how.deaths = deaths;
  std::vector<request> made;
  for (const part_row* const way : ways) {
    request alone = empty;
    alone.*way->count = 1;
    alone.rounds = 3;  // T_R is 2
    made.push_back(alone);
  }
  for (std::size_t one = 0; one < ways.size(); ++one)
    for (std::size_t other = one; other < ways.size(); ++other)
      for (const char* const levels : {"2", "2x1"}) {
        if (deaths > 0 && std::string_view(levels) != "2") continue;
        request beside = empty;
        ++(beside.*ways[one]->count);
        ++(beside.*ways[other]->count);
        beside.levels = levels;
        made.push_back(beside);
      }
  return made;
}

}  // namespace lockflight::check
