// The list of all locks, for programs that treat them alike: the bench, the tests, the checker.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "lockflight/lock/alock.hpp"
#include "lockflight/lock/cql.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/declock.hpp"
#include "lockflight/lock/dlm_server.hpp"
#include "lockflight/lock/dq.hpp"
#include "lockflight/lock/dq_fair.hpp"
#include "lockflight/lock/dslr.hpp"
#include "lockflight/lock/farlock.hpp"
#include "lockflight/lock/flight.hpp"
#include "lockflight/lock/flight_rw.hpp"
#include "lockflight/lock/fompi_rw.hpp"
#include "lockflight/lock/mcs_rw_fair.hpp"
#include "lockflight/lock/mcs_rw_rp.hpp"
#include "lockflight/lock/mcs_rw_wp.hpp"
#include "lockflight/lock/msg.hpp"
#include "lockflight/lock/requirements.hpp"
#include "lockflight/lock/rma_mcs.hpp"
#include "lockflight/lock/rma_rw.hpp"
#include "lockflight/lock/shiftlock.hpp"
#include "lockflight/lock/spin.hpp"

namespace lockflight::lock {

/// A lock template as a value that can be passed around.
template <template <class> class Lock>
struct family {
  template <class Port>
  using on = Lock<Port>;

  /// True. Does not compile, and says why, if programs cannot list and create the lock.
  [[nodiscard]] static consteval bool is_listable() { return check_requirements<Lock>(); }
};

template <class... Families>
struct families {
  static constexpr std::size_t size = sizeof...(Families);

  [[nodiscard]] static consteval bool are_listable() { return (Families::is_listable() && ...); }

  /// Calls `visit(Families{})` for each, in order.
  template <class Visit>
  static void for_each(Visit visit) {
    (visit(Families{}), ...);
  }
  /// Calls `visit(family, number)` for every `Parts`-th, from number `Part` on: so that the code of
  /// many locks can be compiled in several files, which together have all of them.
  template <std::size_t Part, std::size_t Parts, class Visit>
  static void for_each_in_part(Visit visit) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto one = [&]<class Family, std::size_t Number>(
                           Family of, std::integral_constant<std::size_t, Number>) {
        if constexpr (Number % Parts == Part) visit(of, Number);
      };
      (one(Families{}, std::integral_constant<std::size_t, I>{}), ...);
    }(std::index_sequence_for<Families...>{});
  }
};

namespace detail {
template <class...>
struct joined;
template <class... Families>
struct joined<families<Families...>> {
  using type = families<Families...>;
};
template <class... A, class... B, class... More>
struct joined<families<A...>, families<B...>, More...> : joined<families<A..., B...>, More...> {};

template <class, class, class>
struct with_after;
template <class... Families, class Before, class One>
struct with_after<families<Families...>, Before, One>
    : joined<std::conditional_t<std::is_same_v<Families, Before>, families<Families, One>,
                                families<Families>>...> {};
}  // namespace detail

/// The lists one after the other.
template <class... Lists>
using joined = typename detail::joined<Lists...>::type;
/// The list with one more, behind `Before`.
template <class List, class Before, class One>
using with_after = typename detail::with_after<List, Before, One>::type;

/// Every RMA lock, in the order of the lock table. The baselines are in lockflight/baseline. The
/// lists of the benchmark, the checker, the domains, the interface for C, the drop-in and the tests
/// are made from this one.
using all =
    families<family<spin>, family<spin_backoff>, family<d_mcs>, family<rma_mcs>, family<alock>,
             family<farlock>, family<dq>, family<dq_fair>, family<dlm_server>, family<fompi_rw>,
             family<fompi_rw_backoff>, family<rma_rw>, family<mcs_rw_rp>, family<mcs_rw_wp>,
             family<mcs_rw_fair>, family<dslr>, family<shiftlock>, family<cql>, family<declock>,
             family<msg>, family<flight>, family<flight_rw>>;
static_assert(all::are_listable());

}  // namespace lockflight::lock
