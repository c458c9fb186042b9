#include "waiting.hpp"

#include <unistd.h>

namespace lockflight::python {
namespace {

/// Whether Python runs signal handlers in the calling thread.
bool takes_signals() { return getpid() == gettid(); }

}  // namespace

void pause_for_ever() {
  while (true) pause();
}

void call_in_progress::refuse_nested(const std::string& of_lock) {
  throw domain_error(domain_error::reason::wrong_thread,
                     "lock '" + of_lock + "' in a handler of a signal, during a wait for lock '" +
                         present_call->of_ +
                         "' (accepted: a handler that raises, or that sets a flag)");
}

bool is_interrupted() {
  if (ends_acquire != nullptr) return ends_acquire->is_cancelled();
  if (!takes_signals()) return false;
  const nanobind::gil_scoped_acquire python;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  return false;
}

void this_thread_waits() {
  if (present_call != nullptr) present_call->give_up_interpreter();
}

}  // namespace lockflight::python
