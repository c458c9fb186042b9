// The part of the Python package that is not Python: the module. handles.hpp has a thread's
// handles, waiting.hpp what surrounds a wait, lock_object.hpp the Lock.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <pthread.h>

#include "domains.hpp"
#include "errors.hpp"
#include "handles.hpp"
#include "lock_methods.hpp"
#include "lock_object.hpp"
#include "waiting.hpp"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  // A worker thread of a task may still have a lock when the interpreter ends. The kernel frees it.
  nb::set_leak_warnings(false);
  using namespace lockflight;
  using namespace lockflight::python;
  using namespace nb::literals;

  pthread_atfork(nullptr, nullptr, [] {
    forks.fetch_add(1, std::memory_order_relaxed);
    present_call = nullptr;  // the child does not go back to what a handler has interrupted
  });

  add_errors(m);

  add_domains(m);

  nb::class_<cancellation>(m, "Cancellation")
      .def(nb::init<>())
      .def("cancel", &cancellation::cancel);
  nb::class_<lock_object>(m, "Lock", nb::type_slots(lock_slots))
      .def(nb::init<const domain&, std::string, std::string, std::string, bool>())
      .def("acquire_unless", &lock_object::take_unless<exclusively>)
      .def("acquire_shared_unless", &lock_object::take_unless<with_others>)
      .def("mark_consistent", [](const lock_object& self) { my_handle(self.of).mark_consistent(); })
      .def("locked", &lock_object::locked)
      .def("still_valid", &lock_object::still_valid)
      .def(
          "valid_for", &lock_object::valid_for,
          "For how many seconds this holder is certainly alone, if its host does not hear from the "
          "cluster again.\n\n0.0 if it is lost, or this thread does not hold; math.inf in the "
          "domain of one machine. While the\nhost is a member, the time grows again and again.")
      .def_prop_ro("held", &lock_object::held)
      .def_prop_ro("lost", &lock_object::lost,
                   "Whether this thread holds the lock and may not be alone any more, because its "
                   "host was cut off\nfrom the cluster. It should stop what it does, and release.")
      .def_prop_ro("owner_died", &lock_object::owner_died)
      .def_prop_ro("token", &lock_object::token);
}
