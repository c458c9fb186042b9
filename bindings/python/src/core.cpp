// The part of the Python package that is not Python: the module. handles.hpp has a thread's
// handles, waiting.hpp what surrounds a wait, handle_object.hpp the Handle that all locks are.
#include <nanobind/nanobind.h>
#include <pthread.h>

#include <vector>

#include "domains.hpp"
#include "errors.hpp"
#include "handle_methods.hpp"
#include "handles.hpp"
#include "waiting.hpp"

// The interpreter calls the function of this name. Ours is below, and calls that of nanobind.
#define PyInit__core lockflight_make_module
NB_MODULE(_core, m) {
#undef PyInit__core
  // A worker thread of a task may still have a lock when the interpreter ends. The kernel frees it.
  nanobind::set_leak_warnings(false);
  using namespace lockflight::python;

  pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1, std::memory_order_relaxed);
    lost_numbers::of_this_process = new lost_numbers;  // another thread may have had its mutex
    present_call = nullptr;  // the child does not go back to what a handler has interrupted
  });

  if (lost_numbers::of_this_process == nullptr) lost_numbers::of_this_process = new lost_numbers;
  add_errors(m);
  add_domains(m);
  add_handle(m);
}

namespace {

/// The classes of the module are those of one interpreter: a second one would make them anew and
/// take them with it when it ends, to the harm of the first. 0, or -1 with an exception set.
int refuse_sub_interpreter(PyObject* /*module*/) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return 0;
  PyErr_SetString(
      PyExc_ImportError,
      "lockflight in a sub-interpreter (accepted: the main interpreter of a process; in "
      "mod_wsgi, WSGIApplicationGroup %{GLOBAL})");
  return -1;
}

/// Puts the refusal before what makes the module: a sub-interpreter may get the definition of the
/// module from the main one.
void refuse_at_execution(PyModuleDef& of) {
  static std::vector<PyModuleDef_Slot> slots;
  if (!slots.empty() || of.m_slots == nullptr) return;
  slots.push_back({Py_mod_exec, reinterpret_cast<void*>(&refuse_sub_interpreter)});
  const PyModuleDef_Slot* each = of.m_slots;
  for (; each->slot != 0; ++each) slots.push_back(*each);
  slots.push_back(*each);
  of.m_slots = slots.data();
}

}  // namespace

extern "C" NB_EXPORT PyObject* PyInit__core() {
  if (refuse_sub_interpreter(nullptr) != 0) return nullptr;
  PyObject* const made = lockflight_make_module();
  if (made != nullptr && PyObject_TypeCheck(made, &PyModuleDef_Type))
    refuse_at_execution(*reinterpret_cast<PyModuleDef*>(made));
  return made;
}
