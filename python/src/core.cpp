// The part of the Python package that is not Python: the module. handles.hpp has a thread's
// handles, waiting.hpp what surrounds a wait, lock_object.hpp the Lock
// and the Units of a semaphore.
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

namespace {

/// What a Lock and Units tell of what this thread holds.
template <class Object>
void add_state(Object& to) {
  using object = typename Object::Type;
  to.def("mark_consistent",
         [](const object& self) {
           lockflight::python::my_handle<typename object::handle>(self.of).mark_consistent();
         })
      .def("locked", &object::locked)
      .def("still_valid", &object::still_valid)
      .def(
          "valid_for", &object::valid_for,
          "For how many seconds this holder is certainly alone, if its host does not hear from the "
          "cluster again.\n\n0.0 if it is lost, or this thread does not hold; math.inf in the "
          "domain of one machine. While the\nhost is a member, the time grows again and again.")
      .def_prop_ro("held", &object::held)
      .def_prop_ro("lost", &object::lost,
                   "Whether this thread holds the lock and may not be alone any more, because its "
                   "host was cut off\nfrom the cluster. It should stop what it does, and release.")
      .def_prop_ro("owner_died", &object::owner_died)
      .def_prop_ro("token", &object::token);
}

}  // namespace

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
  nb::class_<lock_object> lock(m, "Lock", nb::type_slots(lock_slots));
  lock.def("__init__",
           [](lock_object* self, const domain& in, const std::string& name, const std::string& kind,
              const std::string& parameters, bool raises, bool reentrant) {
             new (self) lock_object({.in = in,
                                     .name = name,
                                     .what = {.kind = kind, .parameters = parameters},
                                     .raises = raises,
                                     .reentrant = reentrant});
           })
      .def("acquire_unless", &lock_object::take_unless<exclusively>)
      .def("acquire_shared_unless", &lock_object::take_unless<with_others>)
      .def("attempt", &lock_object::attempt<exclusively>)
      .def("attempt_shared", &lock_object::attempt<with_others>);
  add_state(lock);
  nb::class_<units_object> units(m, "Units", nb::type_slots(units_slots));
  units
      .def("__init__",
           [](units_object* self, const domain& in, const std::string& name, int count,
              bool raises) {
             new (self) units_object(
                 {.in = in, .name = name, .what = {}, .units = count, .raises = raises});
           })
      .def("acquire_unless", &units_object::take_unless<of_units>)
      .def("attempt", &units_object::attempt<of_units>)
      .def_prop_ro("unit", [](const units_object& self) -> nb::object {
        const named_semaphore* const mine = known_handle<named_semaphore>(self.of);
        if (mine == nullptr || !mine->is_held()) return nb::none();
        return nb::int_(mine->unit());
      });
  add_state(units);
}
