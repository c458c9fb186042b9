#include "lab/bench/port/clock.hpp"

#include <algorithm>
#include <limits>
#include <thread>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lockflight::bench {
namespace {

/// True if the counter runs at one rate in all of the processor's states (Intel SDM, 17.17.1).
bool has_invariant_tsc() {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned power_management_leaf = 0x80000007;
  constexpr unsigned invariant_tsc_bit = 1u << 8;
  return __get_cpuid(power_management_leaf, &eax, &ebx, &ecx, &edx) != 0 &&
         (edx & invariant_tsc_bit) != 0;
#else
  return false;
#endif
}

template <class Read>
std::uint64_t least_apart(Read read) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < 2'000; ++i) {
    const std::uint64_t first = read();
    least = std::min(least, read() - first);
  }
  return least;
}

#if defined(__x86_64__)
/// The counter and the steady clock at one moment: the shortest of several tries.
struct reading {
  std::uint64_t tsc = 0;
  std::uint64_t ns = 0;
};
reading take_reading() {
  reading best;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before = __builtin_ia32_rdtsc();
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    const std::uint64_t took = __builtin_ia32_rdtsc() - before;
    if (took >= least) continue;
    least = took;
    best = {before + took / 2,
            static_cast<std::uint64_t>(
                std::chrono::duration_cast<std::chrono::nanoseconds>(since).count())};
  }
  return best;
}
#endif

}  // namespace

tick_clock::tick_clock(bool tsc) : tsc_(tsc) {
#if defined(__x86_64__)
  if (tsc_) {
    const reading start = take_reading();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const reading end = take_reading();
    base_.ticks_per_us =
        1e3 * static_cast<double>(end.tsc - start.tsc) / static_cast<double>(end.ns - start.ns);
  }
#endif
  base_.cost = least_apart([this] { return now(); });
  base_.ordered_cost = least_apart([this] { return now_ordered(); });
}

const tick_clock& tick_clock::calibrated() {
  static const tick_clock clock(has_invariant_tsc());
  return clock;
}

const tick_clock& tick_clock::in_nanoseconds() {
  static const tick_clock clock(false);
  return clock;
}

}  // namespace lockflight::bench
