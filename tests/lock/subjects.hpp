// What the locks' suites run on: a new lock is a line in lock::all (or in `baselines` here), a new
// fabric a line in `fabrics`.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <span>

#include "lockflight/baseline/pthread.hpp"
#include "lockflight/lock/all.hpp"
#include "lockflight/lock/concepts.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/sanitizers.hpp"

namespace lockflight::test {

/// The fabrics that locks are tested on, and their modes.
template <class... Fabrics>
struct fabric_list {};
#if defined(LOCKFLIGHT_TEST_ON_LAUNCH)
using fabrics = fabric_list<launched_fabric>;
inline constexpr std::array lock_modes{launched_nodes};
#elif defined(LOCKFLIGHT_TEST_ON_SIM)
using fabrics = fabric_list<sim_fabric>;
inline constexpr std::array lock_modes = sim_modes;
#elif defined(LOCKFLIGHT_TEST_TSAN) || defined(LOCKFLIGHT_TEST_ASAN)
// ThreadSanitizer does not see across processes, AddressSanitizer makes forks expensive; and delays
// are between the operations of the very port that is there without them.
using fabrics = fabric_list<shm_delayed>;
inline constexpr std::array lock_modes{usual_modes[1]};
#else
using fabrics = fabric_list<shm_plain, shm_delayed>;
inline constexpr std::array lock_modes = usual_modes;
#endif

/// The baselines, which need ports whose cells are ordinary memory.
using baselines =
    lock::families<lock::family<baseline::pthread_mutex>, lock::family<baseline::pthread_rwlock>>;

}  // namespace lockflight::test
