// The requirements of a lock that programs list and create by name. Each is a concept, `listable`
// is all of them, and check_requirements() says in one line which one a lock does not meet.
//
// Cost: none at run time. A port that is only declared stands for every port.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <string_view>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

namespace detail {

/// Declares every operation that a lock may require of its port, and defines none.
template <bool Messages, bool NativeMemory>
struct declared_port {
  static constexpr rma::capability_set capabilities{.messages = Messages,
                                                    .native_memory = NativeMemory};

  rma::rank_t rank() const;
  const rma::topology& machine() const;

  void put(auto cell, rma::word value);
  void get(auto cell, rma::word& result);
  void add(rma::nic_cell, rma::word value);
  void fetch_add(rma::nic_cell, rma::word value, rma::word& result);
  void swap(rma::nic_cell, rma::word value, rma::word& result);
  void compare_swap(rma::nic_cell, rma::word expected, rma::word desired, rma::word& result);
  void flush(rma::rank_t);
  void flush();

  rma::word load(auto cell);
  void store(rma::cpu_cell, rma::word value);
  void store(rma::plain_cell, rma::word value);
  rma::word cpu_fetch_add(rma::cpu_cell, rma::word value);
  rma::word cpu_swap(rma::cpu_cell, rma::word value);
  rma::word cpu_compare_swap(rma::cpu_cell, rma::word expected, rma::word desired);
  void fence();

  rma::word await(auto cell, auto predicate);
  rma::word poll(auto cell, auto predicate, rma::backoff);
  void pause(std::uint64_t nanoseconds);

  rma::deadline deadline_in(std::uint64_t nanoseconds);
  bool is_over(rma::deadline);
  rma::word await_until(auto cell, auto predicate, rma::deadline);

  void send(rma::rank_t, std::array<rma::word, 3>);
  rma::message receive();
  bool try_receive(rma::message&);
  void serve_with(rma::message_handler*);

  void* native_address(rma::plain_cell);
};
using any_port = declared_port<true, true>;
static_assert(rma::messaging_port<any_port> && rma::native_port<any_port>);

[[nodiscard]] constexpr bool is_lock_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

template <class Parameters>
concept lists_parameters = std::default_initializable<Parameters> && requires {
  Parameters::all().size();
  { *Parameters::all().begin() } -> std::convertible_to<parameter<Parameters>>;
};

}  // namespace detail

/// Programs list the lock by its facts: its name is what users type.
template <class L>
concept has_facts = requires {
  { L::about } -> std::convertible_to<facts>;
};
template <class L>
concept has_name_and_source =
    has_facts<L> && detail::is_lock_name(L::about.name) && !L::about.source.empty();

/// Programs set its parameters by name.
template <class L>
concept has_parameters = detail::lists_parameters<typename L::parameters>;

/// Programs take its words from a layout, and make handles of them.
template <class L>
concept has_cells = requires(rma::layout& in, const rma::topology& machine,
                             const typename L::parameters& set, rma::rank_t home) {
  { L::cells::place(in, machine, set, home) } -> std::same_as<typename L::cells>;
};
template <class L>
concept has_constructor =
    std::constructible_from<L, rma::participant<detail::any_port>&, const typename L::cells&,
                            const typename L::parameters&>;

/// Programs acquire it in every mode of its kind, by a wait and by an attempt. A lock that defers,
/// or is as its paper prints it, needs no attempts.
template <class L>
concept has_kind = shared<L> == (L::about.what == kind::rw);
template <class L>
concept has_attempts =
    L::about.defers || L::about.as_printed || (can_try<L> && shared<L> == can_try_shared<L>);

/// Programs find what else a lock offers by its form. A member of that name and of another form
/// would be left out without a word. (An overloaded member has no address, and one with other
/// parameters no such call.)
template <class L>
concept has_timed_attempts_in_form =
    (can_time<L> || !(
                        requires { &L::try_lock_within; } ||
                        requires(L l, std::uint64_t limit) { l.try_lock_within(limit); })) &&
    (can_time_shared<L> ||
     !(
         requires { &L::try_lock_shared_within; } ||
         requires(L l, std::uint64_t limit) { l.try_lock_shared_within(limit); }));
template <class L>
concept has_upgrades_in_form =
    can_upgrade<L> || !(
                          requires { &L::lock_upgrade; } || requires(L l) { l.lock_upgrade(); });
template <class L>
concept has_doorway_in_form = has_doorway<L> || !requires { &L::take_ticket; };
template <class L>
concept has_bounds_in_form = (bounds_overtaking<L> || !requires { &L::most_overtaken; }) &&
                             (
                                 !requires { &L::most_ranks; } ||
                                 requires(const typename L::parameters& set) {
                                   { L::most_ranks(set) } -> std::same_as<std::int64_t>;
                                 });

/// Programs skip a lock on fabrics that lack what `about` says it needs, so `about` has to agree
/// with the constraint of the lock's template.
template <template <class> class Lock, class L = Lock<detail::any_port>>
concept has_needs =
    L::about.needs_messages == !requires { typename Lock<detail::declared_port<false, true>>; } &&
    L::about.needs_native_memory ==
        !requires { typename Lock<detail::declared_port<true, false>>; };

/// A lock that programs list and create by name.
template <template <class> class Lock, class L = Lock<detail::any_port>>
concept listable =
    has_name_and_source<L> && has_parameters<L> && has_cells<L> && has_constructor<L> &&
    exclusive<L> && has_kind<L> && has_attempts<L> && has_timed_attempts_in_form<L> &&
    has_upgrades_in_form<L> && has_doorway_in_form<L> && has_bounds_in_form<L> && has_needs<Lock>;

/// True if the lock is listable. Otherwise the compiler's first error says what it lacks, and the
/// lines around it name the lock.
template <template <class> class Lock>
[[nodiscard]] consteval bool check_requirements() {
  using L = Lock<detail::any_port>;
  if constexpr (!has_facts<L>)
    static_assert(has_facts<L>, "a lock needs its facts: static constexpr lock::facts about{...}");
  else if constexpr (!has_name_and_source<L>)
    static_assert(has_name_and_source<L>,
                  "about.name is of small letters, digits and hyphens, and about.source says where "
                  "the lock comes from");
  else if constexpr (!has_parameters<L>)
    static_assert(has_parameters<L>,
                  "a lock needs a type `parameters` whose static constexpr all() is an array of "
                  "lock::parameter<parameters>, empty if there are none");
  else if constexpr (!has_cells<L>)
    static_assert(has_cells<L>,
                  "a lock needs a type `cells` with static cells place(rma::layout&, const "
                  "rma::topology&, const parameters&, rma::rank_t home)");
  else if constexpr (!has_constructor<L>)
    static_assert(has_constructor<L>,
                  "a lock needs a constructor from (rma::participant<Port>&, const cells&, const "
                  "parameters&)");
  else if constexpr (!exclusive<L>)
    static_assert(exclusive<L>, "a lock needs lock() and unlock()");
  else if constexpr (!has_kind<L>)
    static_assert(has_kind<L>,
                  "a lock with lock_shared() and unlock_shared() is of kind::rw, and every other "
                  "lock is of kind::mutex");
  else if constexpr (!has_attempts<L>)
    static_assert(has_attempts<L>,
                  "a lock needs bool try_lock(), and bool try_lock_shared() if it is of kind::rw");
  else if constexpr (!has_timed_attempts_in_form<L>)
    static_assert(has_timed_attempts_in_form<L>,
                  "an attempt with a limit is bool try_lock_within(std::uint64_t nanoseconds), or "
                  "bool try_lock_shared_within(std::uint64_t nanoseconds)");
  else if constexpr (!has_upgrades_in_form<L>)
    static_assert(has_upgrades_in_form<L>,
                  "a lock with lock_upgrade() has the other members of lock::can_upgrade, too");
  else if constexpr (!has_doorway_in_form<L>)
    static_assert(has_doorway_in_form<L>, "a lock with take_ticket() needs await_turn()");
  else if constexpr (!has_bounds_in_form<L>)
    static_assert(has_bounds_in_form<L>,
                  "bounds are static std::int64_t most_overtaken(const rma::topology&, const "
                  "parameters&), or std::optional<std::int64_t> of the same, and static "
                  "std::int64_t most_ranks(const parameters&)");
  else
    static_assert(has_needs<Lock>,
                  "a lock on an rma::messaging_port says about.needs_messages, a lock on an "
                  "rma::native_port says about.needs_native_memory, and no other does");
  return listable<Lock>;
}

}  // namespace lockflight::lock
