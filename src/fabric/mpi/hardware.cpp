// The levels of a launch: nodes from MPI, deeper levels from hwloc.
#include <algorithm>
#include <string>

#include "fabric/mpi/calls.hpp"
#include "fabric/network/host_nodes.hpp"

namespace lockflight::mpi {
namespace {

using detail::check;
using detail::communicator;

/// The first `ranks` ranks of `all`, by node. Throws std::invalid_argument on all of them alike.
rma::topology nodes_among(const communicator& all, int ranks) {
  const fabric::detail::wanted_nodes cut("LOCKFLIGHT_MPI_NODES");
  detail::agree<std::invalid_argument>(all, cut.why_not);
  return fabric::detail::nodes_of_hosts(detail::first_of_machine(all), ranks, cut.each);
}

}  // namespace

fabric::levels discover(int ranks) {
  const communicator whole = communicator::duplicate(MPI_COMM_WORLD);
  return fabric::detail::levels_of(
      nodes_among(whole, ranks), whole.rank(),
      [&](const std::string& mine) { return detail::gather(whole, mine); });
}

namespace {

[[nodiscard]] communicator duplicate_of(int communicator_handle) {
  detail::require_mpi();
  const MPI_Comm of = detail::communicator_of(communicator_handle);
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
  return nodes_among(whole, whole.size());
}

// ---- memory that the ranks of a host share ----

struct host_memory::handles {
  communicator members;
  communicator machine;
  detail::window shared;
};

host_memory::host_memory(environment& in, int ranks, std::size_t bytes)
    : handles_(std::make_unique<handles>()) {
  handles& h = *handles_;
  h.members = communicator::split(MPI_COMM_WORLD, in.rank() < ranks ? 0 : -1);
  if (!h.members) return;
  h.machine = communicator::of_machine(h.members.get());
  leader_ = in.rank();
  detail::broadcast(h.machine, &leader_, 1, MPI_INT32_T);
  whole_ = h.machine.size() == ranks;  // so it is on all of them, or on none
  constexpr std::size_t slack = 4096;  // for an alignment that MPI does not promise
  const bool first = h.machine.rank() == 0;
  void* at = nullptr;
  MPI_Win shared = MPI_WIN_NULL;
  check(PMPI_Win_allocate_shared(first ? static_cast<MPI_Aint>(bytes + slack) : 0, 1, MPI_INFO_NULL,
                                 h.machine.get(), &at, &shared),
        "MPI_Win_allocate_shared");
  h.shared = detail::window(shared);
  MPI_Aint size = 0;
  int unit = 0;
  check(PMPI_Win_shared_query(shared, 0, &size, &unit, &at), "MPI_Win_shared_query");
  // Both sides map whole pages, so all processes round to the same offset.
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  constexpr std::uintptr_t line = 128;
  data_ = reinterpret_cast<std::byte*>((address + line - 1) / line * line);
  if (first) std::fill_n(data_, bytes, std::byte{0});
  detail::meet(h.members);
}

host_memory::~host_memory() = default;

}  // namespace lockflight::mpi
