#include "mpi_preload/window_groups.hpp"

#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "fabric/mpi/calls.hpp"
#include "mpi_preload/group_by_mpi.hpp"
#include "mpi_preload/group_on_host.hpp"
#include "mpi_preload/group_table.hpp"
#include "mpi_preload/settings.hpp"

namespace lockflight::mpi_preload {
namespace {

using mpi::detail::agree;
using mpi::detail::communicator;

/// True if a group on this host could not share memory of its own: the next groups are MPI's.
constinit std::atomic<bool> host_cannot{false};

/// The first rank's message about the group of a window.
struct said_of_group {
  window_group::name called{};
  std::uint64_t is_there = 0;
  std::uint64_t is_on_host = 0;
};

[[nodiscard]] said_of_group find_or_name(MPI_Comm whole, bool on_one_host) {
  group_table& groups = known_groups();
  const std::lock_guard alone(groups.guard);
  said_of_group says;
  if (group_table::row* const found = groups.row_of(whole)) {
    says = {.called = found->group->called(), .is_there = 1};
    groups.count_in(*found);
  } else {
    // Without random numbers, one that no other group of a process of this host has.
    static std::uint64_t named = 0;
    if (getrandom(says.called.data(), sizeof says.called, 0) != sizeof says.called)
      says.called = {number_of_this_host() ^ static_cast<std::uint64_t>(getpid()), ++named};
    says.is_on_host = on_one_host && !host_cannot.load(std::memory_order_relaxed) ? 1 : 0;
  }
  return says;
}

/// The cores that ranks of one host may use together. Fails on all ranks alike if `why` names a
/// fault of one of them. Collective.
[[nodiscard]] int cores_of(const communicator& all, const std::string& why) {
  struct {
    cpu_set_t cores;
    std::uint64_t is_faulty;
  } of_all{};
  if (sched_getaffinity(0, sizeof of_all.cores, &of_all.cores) != 0) CPU_ZERO(&of_all.cores);
  of_all.is_faulty = why.empty() ? 0 : 1;
  mpi::detail::combine(all, &of_all, sizeof of_all, MPI_BYTE, MPI_BOR);
  if (of_all.is_faulty != 0) agree(all, why);
  return std::max(1, CPU_COUNT(&of_all.cores));
}

/// A new group of the name that the first rank has chosen, with a row. Collective.
[[nodiscard]] std::shared_ptr<window_group> made_group(const said_of_group& says, MPI_Comm whole,
                                                       const common_settings& common) {
  const communicator all = communicator::borrowed(whole);
  group_table& groups = known_groups();
  // The group's row comes first: a step that can fail on one rank alone may not fail once all ranks
  // have met.
  const std::string why = fault_in([&] {
    const std::lock_guard alone(groups.guard);
    groups.begin(says.called);
  });
  try {
    std::shared_ptr<window_group> made;
    if (says.is_on_host != 0) {
      const int cores = cores_of(all, why);
      const std::string fault = fault_in(
          [&] { made = std::make_shared<group_on_host>(says.called, whole, cores, common); });
      agree(all, fault);
    } else {
      made = group_by_mpi::made(says.called, whole, why);
    }
    const std::lock_guard alone(groups.guard);
    groups.open(made);
    return made;
  } catch (...) {
    const std::lock_guard alone(groups.guard);
    groups.forget(says.called);
    throw;
  }
}

/// The group of this name, which the first rank has found. `is_counted`: this rank has counted the
/// window.
[[nodiscard]] std::shared_ptr<window_group> joined(const window_group::name& called,
                                                   bool is_counted) {
  group_table& groups = known_groups();
  for (;; sched_yield()) {
    const std::lock_guard alone(groups.guard);
    group_table::row& found = groups.rows.at(called);
    if (!is_counted) groups.count_in(found);
    is_counted = true;
    // Another thread of ours has agreed on it with the others, and is about to write it down.
    if (found.group == nullptr) continue;
    std::shared_ptr<window_group> group = found.group;
    groups.drop_ended();
    return group;
  }
}

/// The group of a window, made if there is none. Collective.
[[nodiscard]] std::shared_ptr<window_group> group_of(MPI_Comm whole,
                                                     const common_settings& common) {
  const communicator all = communicator::borrowed(whole);
  said_of_group says;
  if (all.rank() == 0) says = find_or_name(whole, common.on_one_host);
  static_assert(sizeof says == 4 * sizeof(std::uint64_t), "four numbers");
  mpi::detail::broadcast(all, &says, 4, MPI_UINT64_T);
  if (says.is_there == 0) return made_group(says, whole, common);
  return joined(says.called, /*is_counted=*/all.rank() == 0);
}

/// The first rank's message about a window's locks.
struct said_of_window {
  scheme_message scheme{};
  window_place at{};
  segment_source from{};
  bool is_limit = false;
  std::array<char, 512> why{};  ///< why there are none; empty if there are

  void refuse(const std::string& text) { text.copy(why.data(), why.size() - 1); }
};

[[nodiscard]] said_of_window decide(MPI_Info info, window_group& group) {
  said_of_window says;
  const std::string why = fault_in([&] {
    const scheme_name wanted = wanted_scheme(info, group);
    says.scheme = scheme_message(wanted);
    if (!group.is_first_rank()) return;
    const reservation place = group.reserve(words_of_window(wanted, group));
    says.at = place.at;
    says.from = place.from;
    says.is_limit = says.at.tag < 0;
    if (says.is_limit)
      throw limit_reached("no room for one window more of this group of processes");
  });
  says.refuse(why);
  return says;
}

/// Undoes a join that has failed on all ranks. `for_ever`: the group gets no window any more.
void forget_join(const window_grant& was, bool for_ever) {
  was.group->give_back(was.at);
  group_table& groups = known_groups();
  const std::lock_guard alone(groups.guard);
  group_table::row& row = groups.rows.at(was.group->called());
  if (for_ever) groups.close(row);
  groups.count_out(row);
}

}  // namespace

std::shared_ptr<window_group> group_that_meets(MPI_Comm whole) {
  group_table& groups = known_groups();
  const std::lock_guard alone(groups.guard);
  const group_table::row* const row = groups.row_of(whole);
  return row != nullptr && row->group->meets_in_memory() ? row->group : nullptr;
}

owned_window take_spare(const window_group& of) {
  group_table& groups = known_groups();
  const std::lock_guard alone(groups.guard);
  group_table::row& row = groups.rows.at(of.called());
  if (row.spare_count == 0) return nullptr;
  groups.count_in(row);
  return std::move(row.spares[--row.spare_count]);
}

bool keep_spare(const window_group& of, owned_window& was) {
  group_table& groups = known_groups();
  const std::lock_guard alone(groups.guard);
  group_table::row& row = groups.rows.at(of.called());
  if (row.spare_count == group_table::most_spares) return false;
  row.spares[row.spare_count++] = std::move(was);
  groups.count_out(row);
  return true;
}

window_offer offer_for(MPI_Comm whole, MPI_Info info) {
  std::shared_ptr<window_group> group;
  {
    group_table& groups = known_groups();
    const std::lock_guard alone(groups.guard);
    group_table::row* const row = groups.row_of(whole);
    if (row == nullptr || row->group->ends_together()) return {};
    groups.count_in(*row);
    group = row->group;
  }
  window_offer made{.called = group->called()};
  const std::string why_not = fault_in([&] {
    const scheme_name wanted = wanted_scheme(info, *group);
    made.scheme = scheme_message(wanted);
    made.at = group->reserve_in_segments(words_of_window(wanted, *group));
  });
  if (why_not.empty() && made.is_one() && group->has_segment(made.at)) return made;
  withdraw(made);
  return {};
}

void withdraw(const window_offer& offer) {
  group_table& groups = known_groups();
  const std::lock_guard alone(groups.guard);
  group_table::row& row = groups.rows.at(offer.called);
  row.group->give_back(offer.at);
  groups.count_out(row);
}

window_grant accept(const window_offer& offer, MPI_Comm whole, MPI_Info info) {
  const bool is_first = communicator::borrowed(whole).rank() == 0;
  window_grant made{
      .group = joined(offer.called, is_first), .at = offer.at, .scheme = offer.scheme};
  // For its warnings, as in `decide`: the first rank's settings count. Those of the environment
  // were read for the first window of the group.
  if (!is_first && info != MPI_INFO_NULL)
    static_cast<void>(fault_in([&] { static_cast<void>(wanted_scheme(info, *made.group)); }));
  return made;
}

window_grant join(MPI_Comm whole, MPI_Info info, const common_settings& common) {
  const communicator all = communicator::borrowed(whole);
  window_grant made{.group = group_of(whole, common), .at = {}, .scheme = {}};
  try {
    // Each rank reads its own settings, for the warnings; those of the first one count, since
    // parameters may say where a lock's words lie.
    said_of_window says = decide(info, *made.group);
    mpi::detail::broadcast(all, &says, sizeof says, MPI_BYTE);
    if (says.why[0] != '\0') {
      if (says.is_limit) throw limit_reached(says.why.data());
      throw mpi::unavailable(says.why.data());
    }
    made.scheme = says.scheme;
    made.at = says.at;
    made.group->prepare(says.at, says.from, whole);
  } catch (const cannot_share&) {
    host_cannot.store(true, std::memory_order_relaxed);
    forget_join(made, /*for_ever=*/true);
    common_settings elsewhere = common;
    elsewhere.on_one_host = false;
    return join(whole, info, elsewhere);
  } catch (...) {
    forget_join(made, /*for_ever=*/false);
    throw;
  }
  return made;
}

void leave(window_grant was) {
  group_table& groups = known_groups();
  const std::shared_ptr<window_group> group = std::move(was.group);
  if (!group->ends_together()) {
    group->give_back(was.at);
    const std::lock_guard alone(groups.guard);
    return groups.count_out(groups.rows.at(group->called()));
  }
  // The first rank's word that the group has no window left, and how many groups are idle
  // on some rank: all decide alike.
  std::array<std::uint64_t, 2> seen{};
  {
    const std::lock_guard alone(groups.guard);
    // Not there if other windows' threads have ended it: the last one as the first rank saw it.
    const auto found = groups.rows.find(group->called());
    if (found != groups.rows.end()) seen[0] = groups.begin_to_end(found->second) ? 1 : 0;
    seen[1] = groups.without_windows();
  }
  group->combine(was.at, seen.data(), 2, MPI_UINT64_T, MPI_MAX);
  group->give_back(was.at);
  if (seen[0] == 0) return;
  const std::lock_guard alone(groups.guard);
  const auto found = groups.rows.find(group->called());
  if (found == groups.rows.end()) return;
  if (seen[1] <= group_table::most_idle) return groups.stay(found->second);
  // `group` is now the last owner: the group ends when the guard is released, since its end is
  // collective.
  groups.end(group->called());
}

// In the order of their names, so that two ranks that share several end them in the same order.
void end_idle_groups() {
  group_table& groups = known_groups();
  std::vector<std::shared_ptr<window_group>> idle;
  {
    const std::lock_guard alone(groups.guard);
    for (auto& [name, row] : groups.rows)
      if (row.windows == 0) idle.push_back(std::move(row.group));
    std::erase_if(groups.rows, [](const auto& one) { return one.second.group == nullptr; });
  }
  for (auto& one : idle) one.reset();
}

}  // namespace lockflight::mpi_preload
