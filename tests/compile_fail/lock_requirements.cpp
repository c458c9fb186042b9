// For each requirement of a listed lock, a lock that does not meet it and meets those before it.
// The compiler says of each what it lacks, in this order.
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/requirements.hpp"

namespace lockflight::lock {

template <rma::port Port>
struct complete : d_mcs<Port> {
  using d_mcs<Port>::d_mcs;
};
static_assert(check_requirements<complete>());

#ifndef POSITIVE_CONTROL

/// The facts of d-mcs with one change.
template <class Value>
constexpr facts changed(Value facts::*member, Value to) {
  facts made = d_mcs<detail::any_port>::about;
  made.*member = to;
  return made;
}

template <rma::port Port>
struct without_facts {};
static_assert(check_requirements<without_facts>());

template <rma::port Port>
struct with_empty_source : complete<Port> {
  using complete<Port>::complete;
  static constexpr facts about = changed(&facts::source, {});
};
static_assert(check_requirements<with_empty_source>());

template <rma::port Port>
struct with_unlisted_parameters : complete<Port> {
  using complete<Port>::complete;
  struct parameters {};
};
static_assert(check_requirements<with_unlisted_parameters>());

template <rma::port Port>
struct with_unplaced_cells : complete<Port> {
  using complete<Port>::complete;
  struct cells {};
};
static_assert(check_requirements<with_unplaced_cells>());

template <rma::port Port>
struct without_constructor : complete<Port> {};
static_assert(check_requirements<without_constructor>());

template <rma::port Port>
struct without_lock : complete<Port> {
  using complete<Port>::complete;
  void lock() = delete;
};
static_assert(check_requirements<without_lock>());

template <rma::port Port>
struct of_another_kind : complete<Port> {
  using complete<Port>::complete;
  static constexpr facts about = changed(&facts::what, kind::rw);
};
static_assert(check_requirements<of_another_kind>());

template <rma::port Port>
struct without_attempt : complete<Port> {
  using complete<Port>::complete;
  bool try_lock() = delete;
};
static_assert(check_requirements<without_attempt>());

template <rma::port Port>
struct with_timed_attempt_without_result : complete<Port> {
  using complete<Port>::complete;
  void try_lock_within(std::uint64_t);
};
static_assert(check_requirements<with_timed_attempt_without_result>());

template <rma::port Port>
struct with_half_an_upgrade : complete<Port> {
  using complete<Port>::complete;
  void lock_upgrade();
};
static_assert(check_requirements<with_half_an_upgrade>());

template <rma::port Port>
struct with_half_a_doorway : complete<Port> {
  using complete<Port>::complete;
  void take_ticket();
  void await_turn() = delete;
};
static_assert(check_requirements<with_half_a_doorway>());

template <rma::port Port>
struct with_bound_of_another_form : complete<Port> {
  using complete<Port>::complete;
  static std::int64_t most_overtaken(const rma::topology&) { return 0; }
};
static_assert(check_requirements<with_bound_of_another_form>());

template <rma::port Port>
struct with_needs_that_it_has_not : complete<Port> {
  using complete<Port>::complete;
  static constexpr facts about = changed(&facts::needs_messages, true);
};
static_assert(check_requirements<with_needs_that_it_has_not>());

#endif

}  // namespace lockflight::lock
