#include "fabric/mpi/venue.hpp"

#include <algorithm>
#include <cstdlib>
#include <list>
#include <numeric>
#include <string>

#include "fabric/mpi/trial.hpp"

namespace lockflight::mpi::detail {
namespace {

/// See choose_component (environment.cpp); here the program has initialised MPI before.
void refuse_broken_component(const communicator& all) {
  if (!is_open_mpi_4()) return;
  const communicator machine = communicator::of_machine(all.get());
  const char* const given = std::getenv("OMPI_MCA_osc");
  const std::string components = given != nullptr ? given : "";
  const bool excludes = components.find('^') != std::string::npos;
  const bool names_rdma = components.find("rdma") != std::string::npos;
  const bool uses_rdma = components.empty() || names_rdma != excludes;
  if (!holds_on_all(all, machine.size() != all.size() || !uses_rdma))
    throw unavailable(
        "Open MPI 4.1's component osc/rdma crashes on compare-and-swap where all ranks are on one "
        "machine (accepted: OMPI_MCA_osc=sm,pt2pt in the environment of mpirun)");
}

/// True if `holds` is true of all ranks of `those`, by their ranks in `whole`.
template <class Holds>
[[nodiscard]] bool all_of(const communicator& those, const communicator& whole, Holds holds) {
  std::vector<int> ranks(static_cast<std::size_t>(those.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  MPI_Group from = MPI_GROUP_NULL;
  MPI_Group to = MPI_GROUP_NULL;
  PMPI_Comm_group(those.get(), &from);
  PMPI_Comm_group(whole.get(), &to);
  std::vector<int> there(ranks.size());
  PMPI_Group_translate_ranks(from, those.size(), ranks.data(), to, there.data());
  PMPI_Group_free(&from);
  PMPI_Group_free(&to);
  return std::all_of(there.begin(), there.end(), holds);
}

/// True once ranks of a run that this process took part in have tried this MPI's
/// read-modify-writes.
bool atomics_were_tried = false;

/// Throws unless this MPI's read-modify-writes are atomic. The trial uses the run's own cells,
/// since windows of its own would take longer than the trial.
void require_atomics(const communicator& all, segment& cells) {
  refuse_broken_component(all);
  cells.clear(0, words_of_trials);
  const atomicity found = try_atomics(all, cells);
  if (!found.fetch_add || !found.compare_swap || !found.mixed)
    throw unavailable(
        "this MPI's one-sided read-modify-writes are not atomic: a trial lost some (lockflight "
        "doctor --fabric mpi says which)");
}

/// Two runs with equal keys can use one venue.
struct key {
  std::vector<int> node_of;
  std::uint32_t words = 0;
  bool shared_nodes = false;
  friend bool operator==(const key&, const key&) = default;
};

struct cached {
  key of;
  venue is;
  cached(key k, const config& what)
      : of(std::move(k)), is(communicator::duplicate(MPI_COMM_WORLD), what) {}
};

/// The cached venues, the last used one first. All ranks of MPI_COMM_WORLD have the same list.
std::list<cached>& all_cached() {
  static std::list<cached> all;
  return all;
}
constexpr std::size_t most_cached = 24;

}  // namespace

venue::venue(communicator all, const config& what) : whole(std::move(all)) {
  static_cast<void>(wanted_progress());  // or throws
  const rma::topology& t = what.machine;
  // A rank may have been in runs without the others.
  const bool is_to_try = t.nodes() > 1 && !holds_on_all(whole, atomics_were_tried);
  // There is no trial where the members use the processor alone, as they tell the other ranks.
  const auto has_tried = [&](bool here) {
    if (is_to_try && holds_on_all(whole, here)) atomics_were_tried = true;
  };
  // Over hosts each communicator takes several round trips, in which MPICH never yields.
  members = t.ranks() == whole.size()
                ? communicator::borrowed(whole.get())
                : communicator::split(whole.get(), whole.rank() < t.ranks() ? 0 : -1);
  // Ranks beyond the machine are told here whether the others can run.
  const auto refuse_unless = [this](bool holds, const char* why) {
    if (!holds_on_all(whole, holds)) throw std::invalid_argument(why);
  };
  constexpr const char* spans =
      "a node of the machine given spans several machines of this launch, whose memory cannot be "
      "shared (accepted: levels whose nodes keep to one)";
  if (!members) {
    if (!holds_on_all(whole, true)) refuse_unless(true, spans);
    agree(whole, "");
    has_tried(true);
    return;
  }
  messages = communicator::duplicate(members.get());
  machine = communicator::of_machine(members.get());
  processors = processors_of(machine);
  const auto& node_of = t.nodes_of_ranks();
  const int mine = t.node_of(members.rank());
  const bool together = what.shared_nodes && holds_on_all(members, machine.size() == t.ranks());
  only_cpu = t.nodes() == 1 || together;
  const auto expected = together ? t.ranks() : std::count(node_of.begin(), node_of.end(), mine);
  const auto is_of_node = [&](int rank) {
    return together || node_of[static_cast<std::size_t>(rank)] == mine;
  };
  if (holds_on_all(whole, machine.size() == expected && all_of(machine, members, is_of_node))) {
    node = communicator::borrowed(machine.get());
  } else {
    node = communicator::split(machine.get(), together ? 0 : mine);
    refuse_unless(node.size() == expected, spans);
  }
  const auto take_memory = [&] {
    cells.emplace(members, node, std::max(what.words_per_rank, words_of_trials), only_cpu,
                  what.in_parts);
    if (only_cpu) return;
    if (is_to_try) require_atomics(members, *cells);
    help = help_while_computing(members, *cells);
  };
  if (t.ranks() == whole.size())
    take_memory();
  else
    agree(whole, fault_in(take_memory));
  has_tried(!only_cpu);
}

venue& venue_of(const config& what, std::optional<venue>& fresh) {
  if (what.communicator)
    return fresh.emplace(communicator::duplicate(communicator_of(*what.communicator)), what);
  std::list<cached>& all = all_cached();
  key wanted{what.machine.nodes_of_ranks(), what.words_per_rank, what.shared_nodes};
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const cached& k) { return k.of == wanted; });
  if (at != all.end()) {
    all.splice(all.begin(), all, at);
  } else {
    if (all.size() == most_cached) all.pop_back();
    all.emplace_front(std::move(wanted), what);
  }
  return all.front().is;
}

wait_policy policy_of(const config& what, const venue& at) {
  const int cores = what.processors > 0 ? what.processors : at.processors;
  wait_policy policy = wait_policy::parse(what.waiting, at.machine.size(), cores);
  // With a core for each rank a waiting rank uses its core, as everywhere in MPI; then no store has
  // to check for sleepers.
  if (what.waiting == "auto" && policy.spins > 0) policy.park = false;
  if (what.serves) policy.park = false;
  return policy;
}

void forget_venues() { all_cached().clear(); }

}  // namespace lockflight::mpi::detail
