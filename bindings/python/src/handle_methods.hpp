// The class Handle of the module. What programs call all the time are functions of CPython, not of
// nanobind, whose dispatch of a call with default arguments takes longer than the lock.
#pragma once

#include <nanobind/nanobind.h>

namespace lockflight::python {

void add_handle(nanobind::module_& to);

}  // namespace lockflight::python
