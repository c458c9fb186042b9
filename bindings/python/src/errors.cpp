#include "errors.hpp"

namespace lockflight::python {
namespace {

const char* word_for(domain_error::reason why) {
  using reason = domain_error::reason;
  switch (why) {
    case reason::invalid:
      return "invalid";
    case reason::missing:
      return "missing";
    case reason::disagrees:
      return "disagrees";
    case reason::full:
      return "full";
    case reason::damaged:
      return "damaged";
    case reason::removed:
      return "removed";
    case reason::not_held:
      return "not_held";
    case reason::held:
      return "held";
    case reason::wrong_thread:
      return "wrong_thread";
    case reason::interrupted:
      return "interrupted";
    case reason::system:
      return "system";
  }
  return "unknown";
}

}  // namespace

void add_errors(nanobind::module_& to) {
  domain_error_type = PyErr_NewExceptionWithDoc(
      "lockflight.DomainError",
      "A domain or a lock cannot do that; `reason` says why in a word: missing, full, damaged,\n"
      "removed, not_held, held, wrong_thread or interrupted.",
      PyExc_RuntimeError, nullptr);
  owner_died_type = PyErr_NewExceptionWithDoc(
      "lockflight.OwnerDied",
      "A holder died while it held the lock. Raised by an acquire of a lock with\n"
      "on_owner_died='raise', which then does not hold it.",
      PyExc_RuntimeError, nullptr);
  lock_lost_type = PyErr_NewExceptionWithDoc(
      "lockflight.LockLost",
      "A lock was lost before the end of its `with` or `async with`, so another one may have held\n"
      "it meanwhile. Raised at the end of the block, for a lock with loss='raise'.",
      PyExc_RuntimeError, nullptr);
  if (domain_error_type == nullptr || owner_died_type == nullptr || lock_lost_type == nullptr)
    throw nanobind::python_error();
  to.attr("DomainError") = nanobind::handle(domain_error_type);
  to.attr("OwnerDied") = nanobind::handle(owner_died_type);
  to.attr("LockLost") = nanobind::handle(lock_lost_type);
  nanobind::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const domain_error& e) {
      raise_domain_error(e);
    } catch (const lost_error& e) {
      PyErr_SetString(lock_lost_type, e.what());
    }
  });
}

void raise_domain_error(const domain_error& e) {
  using reason = domain_error::reason;
  if (e.why == reason::invalid || e.why == reason::disagrees) {
    PyErr_SetString(PyExc_ValueError, e.what());
    return;
  }
  if (e.why == reason::system) {
    PyErr_SetString(PyExc_OSError, e.what());
    return;
  }
  // By CPython's own calls: this is called where no exception of C++ may leave.
  PyObject* const error = PyObject_CallFunction(domain_error_type, "s", e.what());
  PyObject* const why = PyUnicode_FromString(word_for(e.why));
  if (error != nullptr && why != nullptr && PyObject_SetAttrString(error, "reason", why) == 0)
    PyErr_SetObject(domain_error_type, error);
  Py_XDECREF(why);
  Py_XDECREF(error);
}

void refuse(PyObject* type, const std::string& what) {
  PyErr_SetString(type, what.c_str());
  throw nanobind::python_error();
}

}  // namespace lockflight::python
