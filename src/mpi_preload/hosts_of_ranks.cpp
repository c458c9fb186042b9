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

namespace lockflight::mpi_preload {
namespace {

using mpi::detail::communicator;

/// The same on all ranks.
struct host_facts {
  std::vector<int> first_of_host;  // [rank]: the lowest rank on its host
  std::vector<int> cores;          // [rank]: those that the ranks of its host may use together

  explicit host_facts(std::size_t ranks) : first_of_host(ranks), cores(ranks) {}
};

/// Of a set of processes of which all are on hosts that this process knows.
struct known_facts {
  MPI_Group of;
  host_facts are;
};
struct stored_facts {
  std::mutex guard;
  std::vector<known_facts> all;
};
stored_facts& stored() {
  // A group of MPI's cannot be freed after MPI_Finalize.
  static never_destroyed<stored_facts> those;
  return those.value;
}
/// Sets of which none contains another are few. What is not stored is found out again.
constexpr std::size_t most_known = 16;

[[nodiscard]] std::vector<int> ranks_in(MPI_Group group, MPI_Group other, std::size_t ranks) {
  std::vector<int> here(ranks);
  std::vector<int> there(ranks);
  std::iota(here.begin(), here.end(), 0);
  PMPI_Group_translate_ranks(group, static_cast<int>(ranks), here.data(), other, there.data());
  return there;
}

/// The facts of a set of processes that contains these. The cores are then those of the larger set:
/// each rank may have others, and they decide only how a rank waits.
[[nodiscard]] std::optional<host_facts> facts_known_of(MPI_Group group, std::size_t ranks) {
  stored_facts& those = stored();
  const std::lock_guard alone(those.guard);
  for (const known_facts& one : those.all) {
    const std::vector<int> there = ranks_in(group, one.of, ranks);
    if (std::find(there.begin(), there.end(), MPI_UNDEFINED) != there.end()) continue;
    host_facts are(ranks);
    std::vector<int> first_here(one.are.first_of_host.size(), -1);  // [first rank there]
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto at = static_cast<std::size_t>(there[r]);
      int& first = first_here[static_cast<std::size_t>(one.are.first_of_host[at])];
      if (first < 0) first = static_cast<int>(r);
      are.first_of_host[r] = first;
      are.cores[r] = one.are.cores[at];
    }
    return are;
  }
  return std::nullopt;
}

void remember(MPI_Group group, const host_facts& are) {
  stored_facts& those = stored();
  const std::lock_guard alone(those.guard);
  if (those.all.size() == most_known) return;
  those.all.push_back({MPI_GROUP_NULL, are});
  // A group of this process's own: that of a communicator ends with it.
  PMPI_Group_union(group, MPI_GROUP_EMPTY, &those.all.back().of);
}

/// Asks the MPI. Collective.
void ask(const communicator& all, MPI_Group group, host_facts& to) {
  const communicator host = communicator::of_machine(all.get());
  MPI_Group on_host = MPI_GROUP_NULL;
  PMPI_Comm_group(host.get(), &on_host);
  // The ranks of the host are in the order of the whole.
  const int lowest = 0;
  struct {
    int first;
    int cores;
  } mine{.first = 0, .cores = mpi::detail::processors_of(host)};
  PMPI_Group_translate_ranks(on_host, 1, &lowest, group, &mine.first);
  PMPI_Group_free(&on_host);
  mpi::detail::gather(all, &mine.first, to.first_of_host.data(), MPI_INT);
  mpi::detail::gather(all, &mine.cores, to.cores.data(), MPI_INT);
}

[[nodiscard]] hosts_of_ranks described(const host_facts& are, int nodes_each) {
  const std::vector<int>& firsts = are.first_of_host;
  hosts_of_ranks found{.machine = fabric::detail::nodes_of_hosts(
                           firsts, static_cast<int>(firsts.size()), nodes_each)};
  for (std::size_t r = 0; r < firsts.size(); ++r) {
    found.several_hosts = found.several_hosts || firsts[r] != 0;
    const auto on_host = std::count(firsts.begin(), firsts.end(), static_cast<int>(r));
    found.shares_cores = found.shares_cores || on_host > are.cores[r];
  }
  return found;
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
  std::optional<host_facts> are;
  bool is_known = false;
  // What takes memory comes before the ranks meet: it may fail on one of them alone.
  std::string bad_setting;
  if (mine.why_not.empty())
    mine.why_not = fault_in([&] {
      fabric::detail::wanted_nodes cut("LOCKFLIGHT_MPI_NODES");
      nodes_each = cut.each;
      bad_setting = cut.why_not;
      are = facts_known_of(group.get(), ranks);
      is_known = are.has_value();
      if (!is_known) are.emplace(ranks);
    });
  if (mine.why_not.empty()) mine.why_not = std::move(bad_setting);
  enum { no_fault, has_numbers, knows, count };
  const auto flag = [](bool is) { return std::uint64_t{is ? 1u : 0u}; };
  std::array<std::uint64_t, count> of_all{flag(mine.why_not.empty()), flag(mine.has_numbers),
                                          flag(is_known)};
  mpi::detail::combine(all, of_all.data(), count, MPI_UINT64_T, MPI_MIN);
  if (of_all[no_fault] == 0) mpi::detail::agree(all, mine.why_not);
  if (of_all[knows] == 0) {
    ask(all, group.get(), *are);
    // A rank that has no memory for it says next time that it does not know.
    static_cast<void>(fault_in([&] { remember(group.get(), *are); }));
  }
  return {.hosts = described(*are, nodes_each), .have_numbers = of_all[has_numbers] != 0};
}

}  // namespace lockflight::mpi_preload
