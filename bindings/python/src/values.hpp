// The values that a Handle of one lock publishes and reads under its name, for elections and for
// work that is done once.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "handle_object.hpp"
#include "lockflight/election.hpp"

namespace lockflight::python {

/// By the thread that holds the lock alone.
void publish(const handle_object& of, const nanobind::bytes& value, bool lasts_with_hold);
/// Without an answer of etcd within a second the value stays, until the hold ends.
void withdraw(const handle_object& of);
/// (bytes, token, whether it lasts with its hold); the token is 0 if there is none.
[[nodiscard]] nanobind::tuple published(const handle_object& of);
/// As that, once it is another one than `seen`, or the time is over: seconds, or None.
[[nodiscard]] nanobind::tuple await_published(const handle_object& of, const nanobind::tuple& seen,
                                              const nanobind::object& seconds);
/// The same for a task of asyncio, in a thread that waits for it; None if the task has cancelled
/// it.
[[nodiscard]] nanobind::object await_published_unless(const handle_object& of, cancellation& by,
                                                      const nanobind::tuple& seen);
/// For a candidate that has got the role. While it makes way, its priority is shown on.
[[nodiscard]] bool makes_way(const handle_object& of, lockflight::detail::precedence& of_candidate,
                             const nanobind::bytes& own_value, const nanobind::object& seconds);
/// For a leader that is about to step down in favour of the candidate with that value.
void prefer(const handle_object& of, const nanobind::bytes& value);
/// For a candidate that waits no more.
void hide_priority(const handle_object& of);
[[nodiscard]] std::uint64_t done_until(const handle_object& of);
void set_done_until(const handle_object& of, std::uint64_t seconds);

}  // namespace lockflight::python
