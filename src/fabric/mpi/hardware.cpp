// The levels of a launch: nodes from MPI, deeper levels from hwloc.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "fabric/mpi/calls.hpp"
#include "fabric/mpi/trial.hpp"

namespace lockflight::mpi {
namespace {

using detail::check;
using detail::communicator;

constexpr std::size_t most_levels = 4;  // what a tree of queues can climb

/// What LOCKFLIGHT_MPI_NODES says, which may be something else on each rank. Throws
/// std::invalid_argument on all of them alike.
int synthetic_nodes(const communicator& all) {
  const char* const given = std::getenv("LOCKFLIGHT_MPI_NODES");
  long nodes = 1;
  std::string why;
  if (given != nullptr && *given != '\0') {
    char* end = nullptr;
    nodes = std::strtol(given, &end, 10);
    constexpr long most = 1 << 20;
    if (*end != '\0' || nodes < 1 || nodes > most)
      why = "LOCKFLIGHT_MPI_NODES '" + std::string(given) +
            "' (accepted: the number of nodes to cut each machine into, from 1)";
  }
  detail::agree<std::invalid_argument>(all, why);
  return static_cast<int>(nodes);
}

/// [level][rank]: for every rank of the whole the element that it names; numbers become dense.
std::vector<int> gathered(const communicator& all, long long mine) {
  std::vector<long long> names(static_cast<std::size_t>(all.size()));
  detail::gather(all, &mine, names.data(), MPI_LONG_LONG);
  std::map<long long, int> number;
  std::vector<int> element_of;
  for (const long long name : names)
    element_of.push_back(number.emplace(name, static_cast<int>(number.size())).first->second);
  return element_of;
}

}  // namespace

fabric::levels discover(int ranks) {
  int world_rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  const communicator whole = communicator::duplicate(MPI_COMM_WORLD);
  const int nodes_each = synthetic_nodes(whole);
  const communicator members = communicator::split(whole.get(), world_rank < ranks ? 0 : -1);
  std::vector<std::vector<int>> levels{std::vector<int>(static_cast<std::size_t>(ranks), 0)};
  std::vector<std::string> names{"launch"};
  int depth = 0;
  if (members) {
    const communicator machine = communicator::of_machine(members.get());
    const int part = machine.rank() * nodes_each / machine.size();
    const communicator node = communicator::split(machine.get(), part);
    int first = members.rank();  // the lowest rank of a node is its name
    detail::broadcast(node, &first, 1, MPI_INT);
    std::vector<int> node_of = gathered(members, first);
    const bool several = *std::max_element(node_of.begin(), node_of.end()) > 0;
    if (several) {
      levels.push_back(std::move(node_of));
      names.emplace_back("node");
    }
    // Below the nodes, the levels that the first rank of each node finds. A rank that is bound to a
    // core finds fewer.
    const shm::hardware below = shm::discover(node.size());
    int deeper = below.machine.levels() - 1;
    detail::broadcast(node, &deeper, 1, MPI_INT);
    detail::combine(members, &deeper, 1, MPI_INT, MPI_MIN);
    deeper = std::min(deeper, static_cast<int>(most_levels - levels.size()));
    for (int level = 2; level <= deeper + 1; ++level) {
      std::vector<int> element_of(static_cast<std::size_t>(node.size()));
      if (node.rank() == 0)
        for (rma::rank_t r = 0; r < node.size(); ++r)
          element_of[static_cast<std::size_t>(r)] = below.machine.element_of(r, level);
      detail::broadcast(node, element_of.data(), node.size(), MPI_INT);
      const long long element = element_of[static_cast<std::size_t>(node.rank())];
      levels.push_back(gathered(members, static_cast<long long>(first) * (1 << 20) + element));
      names.push_back(node.rank() == 0 ? below.level_names[static_cast<std::size_t>(level - 1)]
                                       : "element");
    }
    depth = static_cast<int>(levels.size());
  }
  // Ranks beyond the machine get it from rank 0, since all prepare the same run.
  detail::broadcast(whole, &depth, 1, MPI_INT);
  levels.resize(static_cast<std::size_t>(depth), std::vector<int>(static_cast<std::size_t>(ranks)));
  names.resize(static_cast<std::size_t>(depth));
  for (std::vector<int>& level : levels) detail::broadcast(whole, level.data(), ranks, MPI_INT);
  int has_nodes = names.size() > 1 && names[1] == "node" ? 1 : 0;
  detail::broadcast(whole, &has_nodes, 1, MPI_INT);
  return {rma::topology(std::move(levels), has_nodes != 0 ? 2 : 1), std::move(names)};
}

namespace {

[[nodiscard]] communicator duplicate_of(int communicator_handle) {
  detail::require_mpi();
  const MPI_Comm of = MPI_Comm_f2c(communicator_handle);
  if (of == MPI_COMM_NULL)
    throw std::invalid_argument("MPI_COMM_NULL (accepted: a communicator that this rank is in)");
  return communicator::duplicate(of);
}

}  // namespace

std::string first_rank_says(std::string mine, int communicator_handle) {
  const communicator whole = duplicate_of(communicator_handle);
  std::uint64_t length = mine.size();
  detail::broadcast(whole, &length, 1, MPI_UINT64_T);
  mine.resize(length);
  detail::broadcast(whole, mine.data(), static_cast<int>(length), MPI_CHAR);
  return mine;
}

void agree(const std::string& why, int communicator_handle) {
  detail::agree(duplicate_of(communicator_handle), why);
}

rma::topology nodes_of(int communicator_handle) {
  const communicator whole = duplicate_of(communicator_handle);
  const int nodes_each = synthetic_nodes(whole);
  const communicator machine = communicator::of_machine(whole.get());
  const int part = machine.rank() * nodes_each / machine.size();
  const communicator node = communicator::split(machine.get(), part);
  int first = whole.rank();
  detail::broadcast(node, &first, 1, MPI_INT);
  std::vector<int> node_of = gathered(whole, first);
  if (std::all_of(node_of.begin(), node_of.end(), [](int n) { return n == 0; }))
    return rma::topology::flat(whole.size());
  std::vector<int> root(node_of.size(), 0);
  return rma::topology({std::move(root), std::move(node_of)}, 2);
}

bool shares_cores(int communicator_handle) {
  const communicator whole = duplicate_of(communicator_handle);
  const communicator machine = communicator::of_machine(whole.get());
  int sharing = machine.size() > detail::processors_of(machine) ? 1 : 0;
  detail::combine(whole, &sharing, 1, MPI_INT, MPI_MAX);
  return sharing != 0;
}

// ---- memory that the ranks of a machine share ----

struct machine_memory::handles {
  communicator members;
  communicator machine;
  detail::window shared;
};

machine_memory::machine_memory(int ranks, std::size_t bytes)
    : handles_(std::make_unique<handles>()) {
  handles& h = *handles_;
  int world_rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  h.members = communicator::split(MPI_COMM_WORLD, world_rank < ranks ? 0 : -1);
  if (!h.members) return;
  h.machine = communicator::of_machine(h.members.get());
  leader_ = world_rank;
  detail::broadcast(h.machine, &leader_, 1, MPI_INT32_T);
  whole_ = h.machine.size() == ranks;  // so it is on all of them, or on none
  constexpr std::size_t slack = 4096;  // for an alignment that MPI does not promise
  const bool first = h.machine.rank() == 0;
  void* at = nullptr;
  MPI_Win shared = MPI_WIN_NULL;
  check(MPI_Win_allocate_shared(first ? static_cast<MPI_Aint>(bytes + slack) : 0, 1, MPI_INFO_NULL,
                                h.machine.get(), &at, &shared),
        "MPI_Win_allocate_shared");
  h.shared = detail::window(shared);
  MPI_Aint size = 0;
  int unit = 0;
  check(MPI_Win_shared_query(shared, 0, &size, &unit, &at), "MPI_Win_shared_query");
  // Both sides map whole pages, so all processes round to the same offset.
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  constexpr std::uintptr_t line = 128;
  data_ = reinterpret_cast<std::byte*>((address + line - 1) / line * line);
  if (first) std::fill_n(data_, bytes, std::byte{0});
  barrier();
}

machine_memory::~machine_memory() = default;

bool machine_memory::bring_to_first(rma::rank_t from, std::size_t offset, std::size_t count) {
  constexpr int tag = 2;
  const handles& h = *handles_;
  if (!h.members || from == 0) return false;
  // Only the ranks of a machine know whether rank 0 is on it.
  int with_first = h.members.rank() == 0 ? 1 : 0;
  detail::broadcast(h.machine, &with_first, 1, MPI_INT);
  detail::broadcast(h.members, &with_first, 1, MPI_INT, from);
  if (with_first != 0) return false;
  if (h.members.rank() == from)
    check(MPI_Send(data_ + offset, static_cast<int>(count), MPI_BYTE, 0, tag, h.members.get()),
          "MPI_Send");
  if (h.members.rank() == 0)
    check(MPI_Recv(data_ + offset, static_cast<int>(count), MPI_BYTE, from, tag, h.members.get(),
                   MPI_STATUS_IGNORE),
          "MPI_Recv");
  return true;
}

void machine_memory::barrier() {
  if (handles_->members) detail::meet(handles_->members);
}

}  // namespace lockflight::mpi
