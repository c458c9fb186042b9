#include "fabric/mpi/segment.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

namespace lockflight::mpi::detail {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

/// The place where the cells begin in a rank's piece of shared memory, behind its bells. MPI
/// promises no alignment, but both sides map whole pages, so all processes of the node compute the
/// same place.
std::byte* cells_in(void* piece) {
  const auto at = reinterpret_cast<std::uintptr_t>(piece);
  const std::size_t skip = round_up(at, alignof(bells)) - at + sizeof(bells);
  return static_cast<std::byte*>(piece) + skip;
}

void require_unified(MPI_Win w) {
  int* model = nullptr;
  int found = 0;
  check(PMPI_Win_get_attr(w, MPI_WIN_MODEL, &model, &found), "MPI_Win_get_attr");
  if (found == 0 || *model != MPI_WIN_UNIFIED)
    throw unavailable(
        "this MPI's windows have separate memory models: a target's CPU does not see what others "
        "put (needed: MPI_WIN_UNIFIED)");
}

/// Gives the whole pages within these bytes back to the system and zeroes the rest. False, and
/// nothing done, where the system cannot: the memory is no file's.
bool punch(std::byte* at, std::size_t bytes) {
  std::byte* const end = at + bytes;
  std::byte* const from = at + (round_up(reinterpret_cast<std::uintptr_t>(at), page) -
                                reinterpret_cast<std::uintptr_t>(at));
  std::byte* const to = end - reinterpret_cast<std::uintptr_t>(end) % page;
  if (from >= to || madvise(from, static_cast<std::size_t>(to - from), MADV_REMOVE) != 0)
    return false;
  std::memset(at, 0, static_cast<std::size_t>(from - at));
  std::memset(to, 0, static_cast<std::size_t>(end - to));
  return true;
}

/// Makes a window over the ranks of `its`, which are some of `all`. Throws on all ranks of `all`
/// alike if one of them has none.
template <class Make>
window made_by_all(const communicator& all, const communicator& its, const char* call, Make make) {
  MPI_Win handle = MPI_WIN_NULL;
  const int code = make(&handle);
  window made;
  if (code == MPI_SUCCESS) made = window(handle);
  std::string why = fault_of(code, call);
  if (!why.empty() && is_open_mpi_4())
    why +=
        std::string("; Open MPI 4.1 may have chosen a component that makes none here (accepted ") +
        "over TCP and on one machine: OMPI_MCA_osc=" + osc_that_works +
        " in the environment of mpirun)";
  try {
    agree(all, why);
  } catch (...) {
    // The window is freed collectively if all ranks of `its` have made it.
    if (!holds_on_all(its, code == MPI_SUCCESS)) made.leave();
    throw;
  }
  return made;
}

}  // namespace

segment::segment(const communicator& all, const communicator& node, std::uint32_t words,
                 bool only_cpu, bool in_parts) {
  const std::size_t bytes = std::size_t{words} * sizeof(rma::word);
  const std::size_t piece_bytes = round_up(bytes + sizeof(bells) + alignof(bells), page);
  void* piece = nullptr;
  shared_ = made_by_all(all, node, "MPI_Win_allocate_shared", [&](MPI_Win* made) {
    return PMPI_Win_allocate_shared(static_cast<MPI_Aint>(piece_bytes), 1, MPI_INFO_NULL,
                                    node.get(), &piece, made);
  });
  mine_ = cells_in(piece);
  bytes_ = bytes;
  // This comes before MPI exposes the memory: after that a network card may hold on to its pages.
  if (in_parts && punch(mine_, bytes_)) zero_from_ = 0;
  if (in_parts) new (mine_ - sizeof(bells)) bells;

  // The ranks that are on this node, in their order.
  base_.assign(static_cast<std::size_t>(all.size()), nullptr);
  std::vector<int> neighbours(static_cast<std::size_t>(node.size()));
  const int me = all.rank();
  gather(node, &me, neighbours.data(), MPI_INT);
  for (int i = 0; i < node.size(); ++i) {
    MPI_Aint size = 0;
    int unit = 0;
    void* at = nullptr;
    check(PMPI_Win_shared_query(shared_.get(), i, &size, &unit, &at), "MPI_Win_shared_query");
    base_[static_cast<std::size_t>(neighbours[static_cast<std::size_t>(i)])] = cells_in(at);
  }

  if (!only_cpu) {
    // The fabric does not need an order among accumulates (C6), so the library need not maintain
    // one. All segments are alike.
    info hints;
    hints.set("accumulate_ordering", "none").set("same_size", "true").set("same_disp_unit", "true");
    exposed_ = made_by_all(all, all, "MPI_Win_create", [&](MPI_Win* made) {
      return PMPI_Win_create(mine_, static_cast<MPI_Aint>(bytes), sizeof(rma::word), hints.get(),
                             all.get(), made);
    });
    require_unified(exposed_.get());
    // No rank ever locks a rank of this window exclusively: the check can be left out.
    const int locked = PMPI_Win_lock_all(MPI_MODE_NOCHECK, exposed_.get());
    try {
      agree(all, fault_of(locked, "MPI_Win_lock_all"));
    } catch (...) {
      if (locked == MPI_SUCCESS) PMPI_Win_unlock_all(exposed_.get());
      throw;
    }
  }
}

void segment::clear() {
  new (mine_ - sizeof(bells)) bells;
  std::memset(mine_, 0, bytes_);
  // A rank that learns from us that the zeroes are there finds them.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (exposed_) check(PMPI_Win_sync(exposed_.get()), "MPI_Win_sync");
}

void segment::clear(std::uint32_t first, std::uint32_t count) {
  constexpr std::size_t worth_giving_back = 64 * page;
  const std::uint32_t end = first + count;
  const std::uint32_t used = zero_from_ == UINT32_MAX ? end : std::clamp(zero_from_, first, end);
  std::byte* const at = mine_ + std::size_t{first} * sizeof(rma::word);
  const std::size_t bytes = std::size_t{used - first} * sizeof(rma::word);
  if (exposed_ || bytes < worth_giving_back || !punch(at, bytes)) std::memset(at, 0, bytes);
  if (zero_from_ != UINT32_MAX) zero_from_ = std::max(zero_from_, end);
  // The same fence as after zeroing all cells.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (exposed_) check(PMPI_Win_sync(exposed_.get()), "MPI_Win_sync");
}

segment::~segment() {
  if (exposed_) PMPI_Win_unlock_all(exposed_.get());
}

}  // namespace lockflight::mpi::detail
