// lockflight doctor's measurements: whether SHMEM's atomics are atomic, with the CPU's too, and the
// cost of operations between hosts.
#include <shmem.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

#include "fabric/network/trial.hpp"
#include "fabric/oshmem/link.hpp"

namespace lockflight::oshmem {
namespace {

using detail::link;
using detail::world;

std::string name_of_library() {
  std::array<char, SHMEM_MAX_NAME_LEN + 1> name{};
  shmem_info_get_name(name.data());
  int major = 0;
  int minor = 0;
  shmem_info_get_version(&major, &minor);
  return std::string(name.data()) + ", OpenSHMEM " + std::to_string(major) + '.' +
         std::to_string(minor);
}

/// The ranks that share rank 0's memory add to a word of it, one half by CPU instructions, the
/// other through SHMEM.
std::string try_with_cpu(world& in, const detail::segment& cells) {
  constexpr std::uint32_t index = 64;
  constexpr long rounds = 20'000;
  const auto sharers = std::ranges::count(in.first_of_host, 0);
  long* const mine = cells.cell(index);
  std::byte* const first = in.reach(reinterpret_cast<std::byte*>(mine), 0);
  if (first != nullptr && sharers > 1) {
    std::atomic_ref word(*reinterpret_cast<long*>(first));
    for (long i = 0; i < rounds; ++i)
      in.rank % 2 == 0 ? word.fetch_add(1) : shmem_long_atomic_fetch_add(mine, 1, 0);
  }
  in.meet();
  const bool held = shmem_long_atomic_fetch(mine, 0) == rounds * sharers;
  in.meet();
  if (sharers < 2) return "";
  return held ? "yes, in this trial" : "no: some were lost";
}

}  // namespace

findings probe(environment& in) {
  world& w = in.parts();
  findings found;
  found.library = name_of_library();
  // Each rank is a node of its own: all operations go through SHMEM.
  std::vector<int> node_of(static_cast<std::size_t>(w.size));
  std::iota(node_of.begin(), node_of.end(), 0);
  const detail::segment cells(w, node_of, /*together=*/false, fabric::detail::words_of_trial);
  link net(w, cells);
  fabric::detail::try_network({.ranks = in, .processors = w.processors, .meet = [&] { w.meet(); }},
                              net, found);
  found.with_cpu = try_with_cpu(w, cells);
  w.meet();
  return found;
}

}  // namespace lockflight::oshmem
