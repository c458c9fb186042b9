// Every lock on every fabric, as GoogleTest types. A new lock is a line in lock::all (or in
// `baselines` here), a new fabric a line in `fabrics`.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "lockflight/baseline/pthread.hpp"
#include "lockflight/lock/all.hpp"
#include "lockflight/lock/concepts.hpp"
#include "support/fabrics.hpp"
#include "support/sanitizers.hpp"

namespace lockflight::test {

/// The fabrics that locks are tested on, and their modes.
template <class... Fabrics>
struct fabric_list {};
#if defined(LOCKFLIGHT_TEST_ON_MPI)
using fabrics = fabric_list<mpi_fabric>;
inline constexpr std::array lock_modes{mpi_nodes};
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

/// One lock on one fabric.
template <class Fabric, class Family>
struct subject {
  using fabric = Fabric;
  using port = typename Fabric::port_type;
  using lock = typename Family::template on<port>;

  /// A name for GoogleTest: without dashes, which have a meaning in its filters.
  static std::string name() {
    std::string text = std::string(Fabric::name) + "/" + std::string(lock::about.name);
    std::replace(text.begin(), text.end(), '-', '_');
    return text;
  }
};

struct subject_names {
  template <class Subject>
  static std::string GetName(int) {
    return Subject::name();
  }
};

namespace detail {

template <class... Ts>
struct joined;
template <class... Ts>
struct joined<testing::Types<Ts...>> {
  using type = testing::Types<Ts...>;
};
template <class... As, class... Bs, class... Rest>
struct joined<testing::Types<As...>, testing::Types<Bs...>, Rest...>
    : joined<testing::Types<As..., Bs...>, Rest...> {};

template <class Fabric, class Families>
struct crossed;
template <class Fabric, class... Families>
struct crossed<Fabric, lock::families<Families...>> {
  using type = testing::Types<subject<Fabric, Families>...>;
};

template <class Fabric>
constexpr auto subjects_on() {
  using locks = typename crossed<Fabric, lock::all>::type;
  if constexpr (rma::native_port<typename Fabric::port_type>)
    return typename joined<locks, typename crossed<Fabric, baselines>::type>::type{};
  else
    return locks{};
}

template <class List>
struct all_subjects;
template <class... Fabrics>
struct all_subjects<fabric_list<Fabrics...>> : joined<decltype(subjects_on<Fabrics>())...> {};

}  // namespace detail

/// Fabrics × locks.
using subjects = typename detail::all_subjects<fabrics>::type;

}  // namespace lockflight::test
