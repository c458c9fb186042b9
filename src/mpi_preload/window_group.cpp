#include "mpi_preload/window_group.hpp"

#include <sched.h>
#include <sys/random.h>

#include <algorithm>
#include <map>
#include <utility>

#include "fabric/mpi/calls.hpp"
#include "lockflight/rma/assert.hpp"
#include "mpi_preload/by_messages.hpp"

namespace lockflight::mpi_preload {
namespace {

using mpi::detail::agree;
using mpi::detail::communicator;

// A first segment for some dozens of small windows.
constexpr std::uint32_t usual_words = 1u << 15;
// A segment is made as large as all before it together, up to 128 MiB, so there are few. Memory
// that no rank uses is not taken.
constexpr std::uint32_t most_words = 1u << 24;
// MPI promises tags up to 32,767, and lower ones have other uses.
constexpr std::int32_t first_tag = 16;
constexpr std::int32_t most_windows = 32'000;
constexpr std::uint64_t most_idle = 8;

// Over several hosts a waiting rank yields its core at once, also where it has one for itself: what
// it waits for takes a round trip of the network, and others may be what makes the holder wait.
[[nodiscard]] mpi::config config_for(MPI_Comm whole, rma::topology machine, std::uint32_t words,
                                     bool several_hosts) {
  return {.machine = std::move(machine),
          .waiting = several_hosts ? "yield" : "auto",
          .words_per_rank = words,
          .communicator = PMPI_Comm_c2f(whole),
          .serves = true,
          .patient = several_hosts,
          .in_parts = true};
}

/// The groups of this process. Those that have no windows are there too.
struct table {
  struct row {
    std::shared_ptr<window_group> group{};  // null while it is made
    std::uint64_t windows = 0;
    bool may_end = false;  // at the first rank: its last window has ended
  };
  std::mutex guard;
  std::map<window_group::name, row> rows;

  [[nodiscard]] std::uint64_t idle() const {
    return static_cast<std::uint64_t>(std::count_if(
        rows.begin(), rows.end(), [](const auto& one) { return one.second.windows == 0; }));
  }
};
table& known() {
  // Never destroyed: after MPI_Finalize nothing of it can end.
  static table& groups = *new table;
  return groups;
}

/// Tries first whether there are so many communicators left, with a call that fails on all ranks
/// alike. MPICH ends the process when it has none for a window.
void require_communicators(MPI_Comm whole, std::size_t wanted) {
  std::vector<MPI_Comm> made;
  MPI_Group ranks = MPI_GROUP_NULL;
  PMPI_Comm_group(whole, &ranks);
  int code = MPI_SUCCESS;
  while (code == MPI_SUCCESS && made.size() < wanted) {
    made.push_back(MPI_COMM_NULL);
    code = PMPI_Comm_create(whole, ranks, &made.back());
  }
  if (code != MPI_SUCCESS) made.pop_back();
  for (MPI_Comm& one : made) PMPI_Comm_free(&one);
  PMPI_Group_free(&ranks);
  agree<limit_reached>(communicator::borrowed(whole),
                       code == MPI_SUCCESS ? "" : "MPI has no communicators left for others");
}

/// Whether some of the ranks cannot share memory, wherever the fabric's nodes begin. Collective.
[[nodiscard]] bool on_several_hosts(MPI_Comm whole) {
  const communicator all = communicator::borrowed(whole);
  return !mpi::detail::holds_on_all(all, communicator::of_machine(whole).size() == all.size());
}

}  // namespace

// ---- a group ----

window_group::window_group(const name& called, MPI_Comm whole)
    : called_(called),
      shares_cores_(mpi::shares_cores(PMPI_Comm_c2f(whole))),
      several_hosts_(on_several_hosts(whole)) {
  // Room first: what fails on one rank alone may not fail once all have met.
  const std::string why = fault_in([&] {
    segments_.resize(1);
    words_.emplace_back(rma::line_words, usual_words);
  });
  agree(communicator::borrowed(whole), why);
  segments_[0] = std::make_unique<mpi::membership>(
      config_for(whole, mpi::nodes_of(PMPI_Comm_c2f(whole)), usual_words, several_hosts_));
  words_in_all_ = usual_words;
}

bool window_group::is_of(MPI_Comm whole) const {
  int how = MPI_UNEQUAL;
  PMPI_Comm_compare(whole, communicator(), &how);
  return how == MPI_IDENT || how == MPI_CONGRUENT;
}

window_place window_group::reserve(std::uint32_t words) {
  const std::lock_guard alone(guard_);
  if (free_tags_.empty() && next_tag_ == most_windows) return {};
  window_place at{.words = words};
  for (std::size_t s = 0; s < words_.size() && at.segment < 0; ++s) {
    if (const auto first = words_[s].take(words)) {
      at.segment = static_cast<std::int32_t>(s);
      at.first = *first;
    }
  }
  if (at.segment < 0) {
    at.segment_words = std::max(words + rma::line_words, std::min(words_in_all_, most_words));
    at.segment = static_cast<std::int32_t>(words_.size());
    words_.emplace_back(rma::line_words, at.segment_words);
    at.first = words_.back().take(words).value();
    words_in_all_ += at.segment_words;
  }
  if (free_tags_.empty()) free_tags_.push_back(first_tag + next_tag_++);
  at.tag = free_tags_.back();
  free_tags_.pop_back();
  return at;
}

// Only the first rank has reserved it.
void window_group::give_back(const window_place& at) {
  if (segment(at.segment).access().rank() != 0) return;
  const std::lock_guard alone(guard_);
  free_tags_.push_back(at.tag);
  words_[static_cast<std::size_t>(at.segment)].give_back(at.first, at.words);
}

std::size_t window_group::segments() const {
  const std::lock_guard alone(guard_);
  return segments_.size();
}

mpi::membership& window_group::segment(std::int32_t number) const {
  const std::lock_guard alone(guard_);
  const auto& found = segments_[static_cast<std::size_t>(number)];
  if (found == nullptr) throw limit_reached("the memory for its locks could not be made");
  return *found;
}

// Segments are made in the order of their numbers on all ranks, since that is collective over the
// group's own communicators.
void window_group::add_segment(const window_place& at, std::string why_not) {
  const auto number = static_cast<std::size_t>(at.segment);
  while (segments() != number) sched_yield();
  const std::string no_room = fault_in([&] {
    const std::lock_guard alone(guard_);
    segments_.reserve(number + 1);
  });
  std::unique_ptr<mpi::membership> made;
  if (why_not.empty())
    why_not = fault_in([&] {
      mpi::agree(no_room, segment(0).communicator());
      made = std::make_unique<mpi::membership>(segment(0), at.segment_words);
    });
  const std::lock_guard alone(guard_);
  // The first rank gives no more of a segment that is not there.
  if (made == nullptr && number < words_.size()) words_[number] = word_ranges(0, 0);
  segments_.push_back(std::move(made));
  if (!why_not.empty()) throw limit_reached(why_not);
}

void window_group::prepare(const window_place& at, const std::string& why_not) {
  if (at.segment_words != 0) add_segment(at, why_not);
  // Another thread may be about to make it, for another window.
  while (segments() <= static_cast<std::size_t>(at.segment)) sched_yield();
  segment(at.segment).clear(at.first, at.words);
}

// ---- a process's groups ----

std::shared_ptr<window_group> join_group(MPI_Comm whole) {
  const communicator all = communicator::borrowed(whole);
  table& groups = known();
  // Two words of a name, and whether there is one.
  std::array<std::uint64_t, 3> says{};
  if (all.rank() == 0) {
    const std::lock_guard alone(groups.guard);
    const auto at = std::find_if(groups.rows.begin(), groups.rows.end(), [&](const auto& one) {
      const table::row& row = one.second;
      return !row.may_end && row.group != nullptr && row.group->is_of(whole);
    });
    window_group::name called{};
    if (at != groups.rows.end()) {
      called = at->first;
      ++at->second.windows;
    } else {
      // Without random numbers the name is zero, which is as good for one group.
      static_cast<void>(getrandom(called.data(), sizeof called, 0));
    }
    says = {called[0], called[1], at != groups.rows.end() ? 1u : 0u};
  }
  mpi::detail::broadcast(all, says.data(), static_cast<int>(says.size()), MPI_UINT64_T);
  const window_group::name called{says[0], says[1]};
  if (says[2] != 0) {
    const std::lock_guard alone(groups.guard);
    table::row& found = groups.rows.at(called);
    if (all.rank() != 0) ++found.windows;
    return found.group;
  }
  constexpr std::size_t for_a_group = 12;
  require_communicators(whole, for_a_group);
  // Its row first: what fails on one rank alone may not fail once all have met.
  const std::string why = fault_in([&] {
    const std::lock_guard alone(groups.guard);
    groups.rows.emplace(called, table::row{.windows = 1});
  });
  try {
    agree(all, why);
    auto made = std::make_shared<window_group>(called, whole);
    const std::lock_guard alone(groups.guard);
    groups.rows.at(called).group = made;
    return made;
  } catch (...) {
    const std::lock_guard alone(groups.guard);
    groups.rows.erase(called);
    throw;
  }
}

void forget_join(const window_group& group) {
  table& groups = known();
  const std::lock_guard alone(groups.guard);
  --groups.rows.at(group.called()).windows;
}

window_place place_in(window_group& group, MPI_Comm whole, std::uint32_t words) {
  const communicator all = communicator::borrowed(whole);
  window_place at{};
  if (all.rank() == 0) static_cast<void>(fault_in([&] { at = group.reserve(words); }));
  static_assert(sizeof at == 5 * sizeof(std::uint32_t), "five numbers of four bytes");
  mpi::detail::broadcast(all, &at, 5, MPI_UINT32_T);
  if (at.tag < 0) throw limit_reached("no room for one window more of this group of processes");
  constexpr std::size_t for_a_segment = 4;
  std::string why;
  if (at.segment_words != 0) why = fault_in([&] { require_communicators(whole, for_a_segment); });
  group.prepare(at, why);
  mpi::detail::meet(all);
  return at;
}

void leave_group(std::shared_ptr<window_group> group, const window_place& at) {
  table& groups = known();
  // Whether the group has no window left, as the first rank sees it, and how many groups are idle
  // on some rank: all decide alike.
  std::array<std::uint64_t, 2> seen{};
  int rank = 0;
  PMPI_Comm_rank(group->communicator(), &rank);
  {
    const std::lock_guard alone(groups.guard);
    // Not there if other windows' threads have ended it: the last one as the first rank saw it.
    const auto found = groups.rows.find(group->called());
    if (found != groups.rows.end()) {
      --found->second.windows;
      // No window joins it until it is decided.
      found->second.may_end = rank == 0 && found->second.windows == 0;
      seen[0] = found->second.may_end ? 1 : 0;
    }
    seen[1] = groups.idle();
  }
  combine_by_messages(group->communicator(), at.tag, seen.data(), 2, MPI_UINT64_T, MPI_MAX);
  group->give_back(at);
  if (seen[0] == 0) return;
  const std::lock_guard alone(groups.guard);
  const auto found = groups.rows.find(group->called());
  if (found == groups.rows.end()) return;
  found->second.may_end = false;
  if (seen[1] <= most_idle) return;
  groups.rows.erase(found);  // `group` is the last but one owner, and its end is collective
}

// In the order of their names, so that two ranks that share several end them in the same order.
void end_idle_groups() {
  table& groups = known();
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
