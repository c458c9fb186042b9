#include "waiting.hpp"

#include <unistd.h>

#include <algorithm>

#include "handles.hpp"

namespace lockflight::python {
namespace {

/// True if Python runs signal handlers in the calling thread.
bool takes_signals() { return getpid() == gettid(); }

}  // namespace

void pause_for_ever() {
  while (true) pause();
}

void call_in_progress::refuse_nested(const recipe& of) {
  throw domain_error(domain_error::reason::wrong_thread,
                     "lock '" + of.name + "' in a handler of a signal, during a wait for lock '" +
                         present_call->of_.name +
                         "' (accepted: a handler that raises, or that sets a flag)");
}

bool is_held_by_this_process(const lock_user& by) {
  return by.is_of_process(getpid()) && !by.waits();
}

void call_in_progress::refuse_wait_for_ended_thread() const {
  const std::chrono::milliseconds of_this_host(0);
  if (std::ranges::any_of(of_.in.users_of(of_.name, nullptr, of_this_host),
                          &is_held_by_this_process))
    throw domain_error(domain_error::reason::interrupted,
                       "lock '" + of_.name +
                           "' in a finalizer at the end of the interpreter: a thread that runs no "
                           "more holds it (accepted: a lock that is released before the end)");
}

bool is_interrupted() {
  if (ends_acquire != nullptr) return ends_acquire->is_cancelled();
  if (interpreter_ends()) {
    if (present_call == nullptr || !present_call->keeps_interpreter()) return false;
    present_call->refuse_wait_for_ended_thread();
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    return false;
  }
  if (!takes_signals()) return false;
  const nanobind::gil_scoped_acquire python;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  return false;
}

void this_thread_waits() {
  if (present_call != nullptr) present_call->give_up_interpreter();
}

}  // namespace lockflight::python
