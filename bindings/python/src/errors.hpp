// The exceptions of Python that the package raises.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "lockflight/domain.hpp"

namespace lockflight::python {

inline PyObject* domain_error_type = nullptr;
inline PyObject* owner_died_type = nullptr;
inline PyObject* lock_lost_type = nullptr;

/// Makes the types, and has nanobind raise them.
void add_errors(nanobind::module_& to);
/// Sets Python's error. Throws nothing, since functions of CPython call it.
void raise_domain_error(const domain_error& e);
/// Throws Python's error.
[[noreturn]] void refuse(PyObject* type, const std::string& what);

}  // namespace lockflight::python
