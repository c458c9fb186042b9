#include "mpi_preload/hosts_of_ranks.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/never_destroyed.hpp"
#include "fabric/mpi/calls.hpp"
#include "fabric/mpi/trial.hpp"
#include "fabric/network/host_nodes.hpp"
#include "mpi_preload/launch.hpp"

namespace lockflight::mpi_preload {
namespace {

using mpi::detail::communicator;

/// [rank]: the lowest rank on its host. The same on all ranks.
using firsts_of_hosts = std::vector<int>;

/// The hosts of a set of processes, all of which this process knows.
struct known_hosts {
  MPI_Group of;
  firsts_of_hosts firsts;
};
struct stored_hosts {
  std::mutex guard;
  std::vector<known_hosts> all;
};
stored_hosts& stored() {
  // A group of MPI's cannot be freed after MPI_Finalize.
  static never_destroyed<stored_hosts> those;
  return those.value;
}
/// The most sets that are stored. There are few sets of which none contains another; a set that is
/// not stored is found out again.
constexpr std::size_t most_known = 16;

[[nodiscard]] std::vector<int> ranks_in(MPI_Group group, MPI_Group other, std::size_t ranks) {
  std::vector<int> here(ranks);
  std::vector<int> there(ranks);
  std::iota(here.begin(), here.end(), 0);
  PMPI_Group_translate_ranks(group, static_cast<int>(ranks), here.data(), other, there.data());
  return there;
}

/// The hosts of these processes, from a stored set that contains them.
[[nodiscard]] std::optional<firsts_of_hosts> known_of(MPI_Group group, std::size_t ranks) {
  stored_hosts& those = stored();
  const std::lock_guard alone(those.guard);
  for (const known_hosts& one : those.all) {
    const std::vector<int> there = ranks_in(group, one.of, ranks);
    if (std::find(there.begin(), there.end(), MPI_UNDEFINED) != there.end()) continue;
    firsts_of_hosts firsts(ranks);
    std::vector<int> first_here(one.firsts.size(), -1);  // [first rank there]
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto at = static_cast<std::size_t>(there[r]);
      int& first = first_here[static_cast<std::size_t>(one.firsts[at])];
      if (first < 0) first = static_cast<int>(r);
      firsts[r] = first;
    }
    return firsts;
  }
  return std::nullopt;
}

void remember(MPI_Comm whole, const firsts_of_hosts& firsts) {
  stored_hosts& those = stored();
  const std::lock_guard alone(those.guard);
  if (those.all.size() == most_known) return;
  known_hosts found{MPI_GROUP_NULL, firsts};
  those.all.reserve(those.all.size() + 1);
  found.of = group_in_launch(whole);
  those.all.push_back(std::move(found));
}

/// Asks the MPI. Collective.
void ask(const communicator& all, MPI_Group group, firsts_of_hosts& to) {
  const communicator host = communicator::of_machine(all.get());
  MPI_Group on_host = MPI_GROUP_NULL;
  PMPI_Comm_group(host.get(), &on_host);
  // The ranks of the host are in the order of the whole.
  const int lowest = 0;
  int mine = 0;
  PMPI_Group_translate_ranks(on_host, 1, &lowest, group, &mine);
  PMPI_Group_free(&on_host);
  mpi::detail::gather(all, &mine, to.data(), MPI_INT);
}

[[nodiscard]] hosts_of_ranks described(const firsts_of_hosts& firsts, int nodes_each) {
  return {.machine =
              fabric::detail::nodes_of_hosts(firsts, static_cast<int>(firsts.size()), nodes_each),
          .several_hosts =
              std::any_of(firsts.begin(), firsts.end(), [](int first) { return first != 0; })};
}

class group_of {
 public:
  explicit group_of(MPI_Comm whole) { PMPI_Comm_group(whole, &is_); }
  ~group_of() { PMPI_Group_free(&is_); }
  group_of(const group_of&) = delete;
  group_of& operator=(const group_of&) = delete;
  [[nodiscard]] MPI_Group get() const { return is_; }

 private:
  MPI_Group is_ = MPI_GROUP_NULL;
};

}  // namespace

found_hosts find_hosts(MPI_Comm whole, readiness mine) {
  const communicator all = communicator::borrowed(whole);
  const auto ranks = static_cast<std::size_t>(all.size());
  const group_of group(whole);
  int nodes_each = 1;
  std::optional<firsts_of_hosts> firsts;
  bool is_known = false;
  // The steps that take memory come before the ranks meet: they may fail on one rank alone.
  std::string bad_setting;
  if (mine.why_not.empty())
    mine.why_not = fault_in([&] {
      fabric::detail::wanted_nodes cut("LOCKFLIGHT_MPI_NODES");
      nodes_each = cut.each;
      bad_setting = cut.why_not;
      firsts = known_of(group.get(), ranks);
      is_known = firsts.has_value();
      if (!is_known) firsts.emplace(ranks);
    });
  if (mine.why_not.empty()) mine.why_not = std::move(bad_setting);
  enum { no_fault, has_numbers, knows, count };
  const auto flag = [](bool is) { return std::uint64_t{is ? 1u : 0u}; };
  std::array<std::uint64_t, count> of_all{flag(mine.why_not.empty()), flag(mine.has_numbers),
                                          flag(is_known)};
  mpi::detail::combine(all, of_all.data(), count, MPI_UINT64_T, MPI_MIN);
  if (of_all[no_fault] == 0) mpi::detail::agree(all, mine.why_not);
  if (of_all[knows] == 0) {
    ask(all, group.get(), *firsts);
    // A rank that has no memory to store the set asks again the next time.
    static_cast<void>(fault_in([&] { remember(whole, *firsts); }));
  }
  return {.hosts = described(*firsts, nodes_each), .have_numbers = of_all[has_numbers] != 0};
}

}  // namespace lockflight::mpi_preload
