#include "lab/bench/workload/results.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace lockflight::bench {
namespace {

/// An event takes 24 bytes here and on average 110 to 130 in the file, so that the file is about
/// 100 MB at most, which a viewer opens.
std::size_t events_for(int ranks, bool trace) {
  constexpr std::size_t most = 750'000;
  constexpr std::size_t most_each = 1u << 16;
  return trace ? std::min(most_each, most / static_cast<std::size_t>(ranks)) : 0;
}

}  // namespace

mapping::mapping(std::size_t bytes, bool shared) : bytes_(bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "mmap of the results");
  data_ = static_cast<std::byte*>(at);
  // A large page would commit the results of two dozen ranks for one of them. If the kernel has
  // none, so much the better.
  if (!shared) static_cast<void>(madvise(at, bytes, MADV_NOHUGEPAGE));
}

mapping::~mapping() { munmap(data_, bytes_); }

std::size_t run_results::bytes_for(const run_plan& plan) {
  const int ranks = plan.machine.ranks();
  return sizeof(common_block) + plan.locks * sizeof(witness) +
         static_cast<std::size_t>(ranks) *
             (sizeof(rank_result) + events_for(ranks, plan.trace) * sizeof(fabric::trace_event));
}

run_results::run_results(const run_plan& plan, std::byte* memory, rma::rank_t leader, bool whole)
    : leader_(leader), whole_(whole), events_each_(events_for(plan.machine.ranks(), plan.trace)) {
  // Simulated ranks are fibers of this process; there may be a million, and reading a page of a
  // private mapping that was not written takes no memory.
  if (memory == nullptr) memory = memory_.emplace(bytes_for(plan), plan.profile == nullptr).data();
  const auto count = static_cast<std::size_t>(plan.machine.ranks());
  std::byte* at = memory;
  // The first of the ranks that share the memory may be at work already: zeroes are the start.
  common_ = reinterpret_cast<common_block*>(at);
  at += sizeof(common_block);
  seen_ = reinterpret_cast<witness*>(at);
  at += plan.locks * sizeof(witness);
  // Results start as the kernel's zeroes; they are not written, so that the pages of ranks that
  // touch little stay uncommitted.
  ranks_ = {reinterpret_cast<rank_result*>(at), count};
  at += count * sizeof(rank_result);
  events_ = reinterpret_cast<fabric::trace_event*>(at);
}

run_results::run_results(const run_plan& plan) : run_results(plan, nullptr, 0, true) {}

}  // namespace lockflight::bench
