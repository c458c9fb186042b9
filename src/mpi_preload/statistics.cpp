#include "mpi_preload/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace lockflight::mpi_preload {
namespace {

std::string& kept() {
  static std::string text;
  return text;
}

}  // namespace

const char* to_string(lock_kind k) {
  switch (k) {
    case lock_kind::exclusive:
      return "exclusive";
    case lock_kind::shared:
      return "shared";
    case lock_kind::all:
      return "all";
  }
  return "";
}

std::string tell(const window_statistics& mine, const std::string& window,
                 const scheme_name& scheme, window_group& group, const window_place& at) {
  const int rank = group.port_of(at).rank();
  window_statistics sum = mine;
  const auto combine = [&](void* values, std::size_t count, MPI_Datatype type, MPI_Op op) {
    group.combine(at, values, static_cast<int>(count), type, op);
  };
  combine(sum.locks.data(), sum.locks.size(), MPI_UINT64_T, MPI_SUM);
  combine(sum.waited_s.data(), sum.waited_s.size(), MPI_DOUBLE, MPI_SUM);
  combine(&sum.longest_wait_s, 1, MPI_DOUBLE, MPI_MAX);
  combine(sum.handoffs.data(), sum.handoffs.size(), MPI_UINT64_T, MPI_SUM);
  // The pair of ranks with the most waits: each rank gives its own most, the largest is printed.
  const auto most = std::max_element(mine.waited_for.begin(), mine.waited_for.end());
  struct {
    int count;
    int rank;
  } of_all{most == mine.waited_for.end() ? 0 : static_cast<int>(*most), rank};
  combine(&of_all, 1, MPI_2INT, MPI_MAXLOC);
  int whom = rank == of_all.rank ? static_cast<int>(most - mine.waited_for.begin()) : -1;
  combine(&whom, 1, MPI_INT, MPI_MAX);
  if (rank != 0) return "";

  const std::string set = said_of_parameters(scheme);
  std::string text = fmt::format("lockflight: window {}, {} ranks, lock {}{}, lock_all {}\n",
                                 window, group.machine().ranks(), scheme.lock,
                                 set.empty() ? "" : " with " + set, scheme.lock_all);
  text += fmt::format("  {:<10} {:>12} {:>14} {:>14}\n", "lock", "times", "waited s", "mean us");
  for (int k = 0; k < lock_kinds; ++k) {
    const auto i = static_cast<std::size_t>(k);
    if (sum.locks[i] == 0) continue;
    text += fmt::format("  {:<10} {:>12} {:>14.6f} {:>14.3f}\n",
                        to_string(static_cast<lock_kind>(k)), sum.locks[i], sum.waited_s[i],
                        1e6 * sum.waited_s[i] / static_cast<double>(sum.locks[i]));
  }
  text += fmt::format("  longest wait {:.6f} s\n", sum.longest_wait_s);
  text += "  handoffs by level, the whole machine first:";
  for (const std::uint64_t n : sum.handoffs) text += fmt::format(" {}", n);
  text += '\n';
  const lock::window_memory used = memory_of(scheme, group.machine()).used;
  text +=
      fmt::format("  memory of its locks: {} bytes on the first rank of each node, {} on others\n",
                  used.on_first_ranks(), used.on_others());
  if (of_all.count > 0)
    text += fmt::format("  rank {} waited for rank {} most: {} times\n", of_all.rank, whom,
                        of_all.count);
  return text;
}

void keep_for_the_end(const std::string& text) { kept() += text; }

void print_what_was_kept() {
  std::fputs(kept().c_str(), stderr);
  kept().clear();
}

}  // namespace lockflight::mpi_preload
