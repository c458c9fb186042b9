#include "lock_methods.hpp"

#include <cmath>

#include "lock_object.hpp"

namespace nb = nanobind;

namespace lockflight::python {
namespace {

/// What `timeout` of an acquire means, as threading.Lock has it.
nanoseconds patience_of(bool blocking, nb::handle timeout) {
  double seconds = -1;
  if (timeout.is_valid() && !timeout.is_none()) {
    seconds = PyFloat_AsDouble(timeout.ptr());
    if (seconds == -1 && PyErr_Occurred()) {
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
      PyErr_Clear();
      refuse(PyExc_TypeError, "timeout " + std::string(nb::repr(timeout).c_str()) +
                                  " (accepted: a number of seconds, or -1 to wait for ever)");
    }
  }
  if (seconds == -1) return blocking ? for_ever : 0;
  const auto refuse_number = [&](const char* accepted) {
    refuse(PyExc_ValueError,
           "timeout " + std::string(nb::repr(timeout).c_str()) + " (accepted: " + accepted + ")");
  };
  if (!blocking) refuse_number("none with blocking=False");
  constexpr double most = 9e9;
  if (!(seconds >= 0) || seconds > most) refuse_number("0 to 9e9 seconds, or -1 to wait for ever");
  return static_cast<nanoseconds>(std::ceil(seconds * 1e9));
}

/// Does `what` with the Lock or the Units. An exception of C++ becomes Python's.
template <class Object, class What>
PyObject* with(PyObject* self, What what) {
  try {
    if (!nb::inst_ready(self)) refuse(PyExc_TypeError, "its __init__ has not been called");
    return what(*nb::inst_ptr<Object>(self)).release().ptr();
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const domain_error& e) {
    raise_domain_error(e);
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

template <class Object, class How>
PyObject* call_acquire(PyObject* self, PyObject* args, PyObject* named) {
  return with<Object>(self, [&](const Object& lock) -> nb::object {
    nanoseconds patience = for_ever;
    if (named != nullptr || PyTuple_Size(args) != 0) {
      static const char* const names[] = {"blocking", "timeout", nullptr};
      int blocking = 1;
      PyObject* timeout = nullptr;
      if (PyArg_ParseTupleAndKeywords(args, named, "|pO:acquire", const_cast<char**>(names),
                                      &blocking, &timeout) == 0)
        throw nb::python_error();
      patience = patience_of(blocking != 0, timeout);
    }
    return nb::bool_(lock.template take<How>(patience));
  });
}
template <class Object, class How>
PyObject* call_release(PyObject* self, PyObject*) {
  return with<Object>(self, [](const Object& lock) {
    lock.template release<How>();
    return nb::none();
  });
}
template <class Object, class How>
PyObject* call_leave(PyObject* self) {
  return with<Object>(self, [](const Object& lock) {
    lock.template leave<How>();
    return nb::none();
  });
}
template <class Object, class How>
PyObject* call_enter(PyObject* self, PyObject*) {
  return with<Object>(self, [self](const Object& lock) {
    lock.template take<How>(for_ever);
    return nb::borrow(self);
  });
}
template <class Object, class How>
PyObject* call_exit(PyObject* self, PyObject* const*, Py_ssize_t) {
  return call_leave<Object, How>(self);
}
PyObject* call_exit_shared(PyObject* self, PyObject*) {
  return call_leave<lock_object, with_others>(self);
}

/// A table of CPython has functions of several types.
template <class Function>
PyCFunction method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef lock_methods[] = {
    {"acquire", method(&call_acquire<lock_object, exclusively>), METH_VARARGS | METH_KEYWORDS,
     "acquire($self, /, blocking=True, timeout=-1)\n--\n\n"
     "Waits for the lock, at most `timeout` seconds unless that is -1. Whether it is held now."},
    {"release", method(&call_release<lock_object, exclusively>), METH_NOARGS,
     "release($self, /)\n--\n\nBy the thread that acquired; else DomainError."},
    {"acquire_shared", method(&call_acquire<lock_object, with_others>),
     METH_VARARGS | METH_KEYWORDS,
     "acquire_shared($self, /, blocking=True, timeout=-1)\n--\n\nAs acquire, beside other "
     "readers."},
    {"release_shared", method(&call_release<lock_object, with_others>), METH_NOARGS,
     "release_shared($self, /)\n--\n\nBy the thread that acquired; else DomainError."},
    {"__enter__", method(&call_enter<lock_object, exclusively>), METH_NOARGS, nullptr},
    {"__exit__", method(&call_exit<lock_object, exclusively>), METH_FASTCALL, nullptr},
    {"_exit_shared", method(&call_exit_shared), METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyMethodDef units_methods[] = {
    {"acquire", method(&call_acquire<units_object, of_units>), METH_VARARGS | METH_KEYWORDS,
     "acquire($self, /, blocking=True, timeout=-1)\n--\n\n"
     "Waits for a unit, at most `timeout` seconds unless that is -1. Whether one is held now."},
    {"release", method(&call_release<units_object, of_units>), METH_NOARGS,
     "release($self, /)\n--\n\nBy the thread that acquired; else DomainError."},
    {"__enter__", method(&call_enter<units_object, of_units>), METH_NOARGS, nullptr},
    {"__exit__", method(&call_exit<units_object, of_units>), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

const PyType_Slot lock_slots[] = {{Py_tp_methods, lock_methods}, {0, nullptr}};
const PyType_Slot units_slots[] = {{Py_tp_methods, units_methods}, {0, nullptr}};

}  // namespace lockflight::python
