#include "handle_methods.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "errors.hpp"
#include "handle_object.hpp"
#include "values.hpp"

namespace nb = nanobind;

namespace lockflight::python {
namespace {

/// The units of a semaphore; none of a lock, whose count is 0.
std::optional<units> units_from(int count, int take, const std::vector<int>& numbers) {
  if (count == 0) return std::nullopt;
  return units{.count = count, .take = take, .numbers = numbers};
}

constexpr double for_ever_s = -1;

/// The seconds that a caller gives: a number from 0 to 9e9, or -1 if that is to mean for ever.
double seconds_from(const char* name, nb::handle given, bool may_be_for_ever) {
  const auto refused = [&](PyObject* type) {
    refuse(type, std::string(name) + " " + nb::repr(given).c_str() +
                     " (accepted: 0 to 9e9 seconds" +
                     (may_be_for_ever ? ", or -1 to wait for ever)" : ")"));
  };
  const double seconds = PyFloat_AsDouble(given.ptr());
  if (seconds == -1 && PyErr_Occurred() != nullptr) {
    const bool is_no_number = PyErr_ExceptionMatches(PyExc_TypeError) != 0;
    if (!is_no_number && PyErr_ExceptionMatches(PyExc_OverflowError) == 0) throw nb::python_error();
    PyErr_Clear();
    refused(is_no_number ? PyExc_TypeError : PyExc_ValueError);
  }
  constexpr double most = 9e9;
  const bool is_time = seconds >= 0 && seconds <= most;  // false for NaN
  if (!is_time && !(may_be_for_ever && seconds == for_ever_s)) refused(PyExc_ValueError);
  return seconds;
}

/// The limit that the arguments of an acquire stand for, as threading.Lock has them; `otherwise`
/// if there is no `timeout`.
limit limit_of(bool blocking, nb::handle timeout, limit otherwise) {
  if (!timeout.is_valid()) return blocking ? otherwise : limit::at_once();
  const double seconds = timeout.is_none() ? for_ever_s : seconds_from("timeout", timeout, true);
  if (seconds == for_ever_s) return blocking ? limit::for_ever() : limit::at_once();
  if (!blocking)
    refuse(PyExc_ValueError, "timeout " + std::string(nb::repr(timeout).c_str()) +
                                 " (accepted: none with blocking=False)");
  return limit::of_ns(static_cast<std::uint64_t>(std::ceil(seconds * 1e9)));
}

/// Does `what` with the Handle. An exception of C++ becomes Python's.
template <class What>
PyObject* with(PyObject* self, What what) {
  try {
    if (!nb::inst_ready(self)) refuse(PyExc_TypeError, "its __init__ has not been called");
    return what(*nb::inst_ptr<handle_object>(self)).release().ptr();
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const domain_error& e) {
    raise_domain_error(e);
  } catch (const lost_error& e) {
    PyErr_SetString(lock_lost_type, e.what());
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

/// Raises the NotAcquired that Python makes, in the same words for threads and tasks.
[[noreturn]] void raise_not_acquired(nb::handle self, const recipe& late) {
  const nb::object error = self.attr("_not_acquired")(late.name);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

template <mode as>
PyObject* call_acquire(PyObject* self, PyObject* args, PyObject* named) {
  return with(self, [&](const handle_object& of) -> nb::object {
    limit patience = of.patience();
    if (named != nullptr || PyTuple_Size(args) != 0) {
      static const char* const names[] = {"blocking", "timeout", nullptr};
      int blocking = 1;
      PyObject* timeout = nullptr;
      if (PyArg_ParseTupleAndKeywords(args, named, "|pO:acquire", const_cast<char**>(names),
                                      &blocking, &timeout) == 0)
        throw nb::python_error();
      patience = limit_of(blocking != 0, timeout, patience);
    }
    return nb::bool_(of.take(patience, as) == nullptr);
  });
}
template <mode as>
PyObject* call_release(PyObject* self, PyObject*) {
  return with(self, [](const handle_object& of) {
    of.release(as);
    return nb::none();
  });
}
PyObject* call_enter(PyObject* self, PyObject*) {
  return with(self, [self](const handle_object& of) {
    // The object for `as` is found first: nothing may fail any more once the lock is held.
    nb::object entered = of.is_made_of_others() ? nb::getattr(self, "_entered") : nb::borrow(self);
    if (const recipe* const late = of.take(of.patience())) raise_not_acquired(self, *late);
    return entered;
  });
}
PyObject* call_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  return with(self, [](const handle_object& of) {
    of.leave();
    return nb::none();
  });
}

/// A method of the Handle without arguments.
template <auto Method>
PyObject* call(PyObject* self, PyObject*) {
  return with(self, [](const handle_object& of) -> nb::object {
    if constexpr (std::is_void_v<decltype((of.*Method)())>) {
      (of.*Method)();
      return nb::none();
    } else {
      return nb::cast((of.*Method)());
    }
  });
}

/// A table of CPython has functions of several types.
template <class Function>
PyCFunction method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// The public methods. Each text begins with the signature that help() and inspect show.
PyMethodDef methods[] = {
    {"acquire", method(&call_acquire<mode::none>), METH_VARARGS | METH_KEYWORDS,
     "acquire($self, /, blocking=True, timeout=-1)\n--\n\n"
     "Waits for the lock, at most `timeout` seconds unless that is -1. Whether it is held now."},
    {"release", method(&call_release<mode::none>), METH_NOARGS,
     "release($self, /)\n--\n\nBy the thread that acquired; else DomainError."},
    {"acquire_shared", method(&call_acquire<mode::shared>), METH_VARARGS | METH_KEYWORDS,
     "acquire_shared($self, /, blocking=True, timeout=-1)\n--\n\nOf a SharedMutex: as acquire, "
     "beside other readers."},
    {"release_shared", method(&call_release<mode::shared>), METH_NOARGS,
     "release_shared($self, /)\n--\n\nOf a SharedMutex: by the thread that acquired; else "
     "DomainError."},
    {"__enter__", method(&call_enter), METH_NOARGS,
     "__enter__($self, /)\n--\n\nAcquires, and returns what `as` gets, which is the lock. After "
     "within() it raises\nNotAcquired if the lock is not free in time."},
    {"__exit__", method(&call_exit), METH_FASTCALL,
     "__exit__($self, kind, value, traceback, /)\n--\n\nReleases what __enter__ has acquired. Raises "
     "LockLost if the lock was lost meanwhile, unless\nit has loss='ignore'."},
    {"mark_consistent", method(&call<&handle_object::mark_consistent>), METH_NOARGS,
     "mark_consistent($self, /)\n--\n\n"
     "For a holder that was told of a death (owner_died) and has repaired what the lock "
     "guards:\nlater holders are not told. DomainError if this thread does not hold it alone."},
    {"locked", method(&call<&handle_object::locked>), METH_NOARGS,
     "locked($self, /)\n--\n\nWhether anybody holds the lock now, as threading.Lock has it."},
    {"still_valid", method(&call<&handle_object::still_valid>), METH_NOARGS,
     "still_valid($self, /)\n--\n\n"
     "Whether others still find the lock of this holder: not once its domain has been "
     "removed,\nor after a loss in the domain of a cluster."},
    {"valid_for", method(&call<&handle_object::valid_for>), METH_NOARGS,
     "valid_for($self, /)\n--\n\n"
     "For how many seconds this holder is certainly alone, if its host does not hear from the "
     "cluster again.\n\n0.0 if it is lost, or this thread does not hold; math.inf in the "
     "domain of one machine. While the\nhost is a member, the time grows again and again."},
    {nullptr, nullptr, 0, nullptr}};

const PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};

/// The locks of Handles, in their order; with `shared` as readers hold them.
std::vector<part> parts_of(const nb::list& handles, bool shared) {
  std::vector<part> all;
  for (const nb::handle each : handles)
    for (const part& one : nb::cast<const handle_object&>(each).parts())
      all.push_back({.of = one.of, .as = shared ? mode::shared : one.as});
  return all;
}

/// For a task: whether this thread holds all now, for at most `seconds`. False: it was cancelled.
/// `loss_numbers` is as in take_for_task().
bool acquire_unless(nb::handle self, cancellation& cancelled, nb::handle seconds,
                    const std::vector<std::uint64_t>& loss_numbers) {
  const auto& of = nb::cast<const handle_object&>(self);
  const auto end = of.take_unless(cancelled, limit_of(true, seconds, of.patience()), loss_numbers);
  if (end.late != nullptr && !end.is_cancelled) raise_not_acquired(self, *end.late);
  return !end.is_cancelled;
}

/// For a task: true if this thread holds all now, without waiting; None if it holds one of them for
/// another task, so that another thread has to try; else the name of one that was not free.
nb::object attempt(const handle_object& of, const std::vector<std::uint64_t>& loss_numbers) {
  try {
    if (of.is_in_use()) return nb::none();
    const recipe* const late =
        of.take_for_task(limit::at_once(), loss_numbers, [] { return false; });
    if (late == nullptr) return nb::bool_(true);
    return nb::str(late->name.c_str(), late->name.size());
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::held) throw;  // by another object of the name
    return nb::none();
  }
}

}  // namespace

void add_handle(nb::module_& to) {
  to.def(
      "checked_seconds",
      [](const nb::object& seconds) {
        seconds_from("seconds", seconds, false);
        return seconds;
      },
      nb::arg("seconds").none());
  to.def("take_losses", [] {
    const others_run meanwhile;
    return lost_numbers::of_this_process->take();
  });
  nb::class_<cancellation>(to, "Cancellation")
      .def(nb::init<>())
      .def("cancel", &cancellation::cancel);
  nb::class_<lockflight::detail::precedence>(to, "Precedence").def(nb::init<int>());
  nb::class_<handle_object>(to, "Handle", nb::type_slots(slots))
      .def("__init__",
           [](handle_object* self, const domain& in, const std::string& name,
              const std::string& kind, const std::string& parameters, int units, int take,
              const std::vector<int>& numbers, bool raises, bool reentrant, bool shared,
              bool raises_on_loss, std::uint64_t loss_number, double max_hold, int priority) {
             new (self) handle_object({.in = in,
                                       .name = name,
                                       .what = {.kind = kind, .parameters = parameters},
                                       .units = units_from(units, take, numbers),
                                       .raises = raises,
                                       .reentrant = reentrant,
                                       .shared = shared,
                                       .raises_on_loss = raises_on_loss,
                                       .priority = priority,
                                       .loss_number = loss_number,
                                       .max_hold = std::chrono::nanoseconds(
                                           static_cast<std::int64_t>(std::ceil(max_hold * 1e9)))});
           })
      .def(
          "__init__",
          [](handle_object* self, const nb::list& handles, bool shared, nb::handle seconds) {
            new (self) handle_object(parts_of(handles, shared),
                                     limit_of(true, seconds, limit::for_ever()));
          },
          nb::arg(), nb::arg(), nb::arg().none())
      // For the tasks of asyncio.
      .def("_acquire_unless", &acquire_unless)
      .def("_attempt", &attempt)
      .def("_leave", [](const handle_object& self,
                        bool shared) { self.leave(shared ? mode::shared : mode::none); })
      .def("_abandon", &handle_object::abandon)
      // For elections, and for work that is done once.
      .def("_publish", &publish)
      .def("_withdraw", &withdraw)
      .def("_published", &published)
      .def("_await_published", &await_published, nb::arg(), nb::arg().none())
      .def("_await_published_unless", &await_published_unless)
      .def("_makes_way", &makes_way, nb::arg(), nb::arg(), nb::arg().none())
      .def("_prefer", &prefer)
      .def("_hide_priority", &hide_priority)
      .def("_done_until", &done_until)
      .def("_set_done_until", &set_done_until)
      .def_prop_ro("held", &handle_object::held, "Whether this thread holds the lock.")
      .def_prop_ro(
          "lost", &handle_object::lost,
          "Whether this thread holds the lock and may not be alone any more: its host was cut off "
          "from the\ncluster, or the loss was told (on_loss). It should stop what it does, and "
          "release. After the\nrelease: whether the last hold was lost.")
      .def_prop_ro(
          "owner_died", &handle_object::owner_died,
          "Whether a holder has died that was alone, and nobody has repaired what the lock "
          "guards:\nfor the thread that holds it.")
      .def_prop_ro(
          "token", &handle_object::token,
          "A number that is greater at each exclusive acquire of the name, so that a store "
          "can refuse an\nolder holder: for the thread that holds it.")
      .def_prop_ro(
          "unit",
          [](const handle_object& self) -> nb::object {
            const std::vector<int> held = self.units_held();
            return held.empty() ? nb::object(nb::none()) : nb::object(nb::int_(held.front()));
          },
          "Of a semaphore: the number of the unit that this thread holds, the first of "
          "units_held, or None.")
      .def_prop_ro(
          "units_held",
          [](const handle_object& self) -> nb::tuple {
            return nb::tuple(nb::cast(self.units_held()));
          },
          "Of a semaphore: the numbers of all units that this thread holds, a tuple.");
}

}  // namespace lockflight::python
