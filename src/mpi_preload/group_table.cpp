#include "mpi_preload/group_table.hpp"

#include <algorithm>

#include "base/never_destroyed.hpp"

namespace lockflight::mpi_preload {

group_table& known_groups() {
  // Not allocated at its first use: that could fail on one rank alone.
  static never_destroyed<group_table> groups;
  return groups.value;
}

std::uint64_t group_table::without_windows() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(rows, [](const auto& one) { return one.second.windows == 0; }));
}

group_table::row* group_table::row_of(MPI_Comm whole) {
  MPI_Group ranks = MPI_GROUP_NULL;
  PMPI_Comm_group(whole, &ranks);
  const auto at = std::ranges::find_if(rows, [&](const auto& one) {
    return one.second.is == state::open && one.second.group->is_of(ranks);
  });
  PMPI_Group_free(&ranks);
  return at != rows.end() ? &at->second : nullptr;
}

void group_table::open(const std::shared_ptr<window_group>& made) {
  row& one = rows.at(made->called());
  one.group = made;
  one.is = state::open;
}

void group_table::drop_ended() {
  std::erase_if(rows, [](const auto& of) {
    const row& one = of.second;
    return one.windows == 0 && one.group != nullptr && !one.group->ends_together() &&
           (one.is == state::closed || one.group->is_at_its_end());
  });
}

void group_table::count_out(row& one) {
  if (--one.windows == 0 && !one.group->ends_together() && one.group->is_first_rank() &&
      without_windows() > most_idle)
    one.group->announce_end();
  drop_ended();
}

bool group_table::begin_to_end(row& one) {
  --one.windows;
  if (!one.group->is_first_rank() || one.windows != 0) return false;
  one.is = state::ending;
  return true;
}

}  // namespace lockflight::mpi_preload
