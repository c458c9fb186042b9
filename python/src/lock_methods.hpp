// The methods of a Lock and of Units that programs call all the time. They are functions of
// CPython, not of nanobind, whose dispatch of a call with default arguments takes longer than the
// lock.
#pragma once

#include <nanobind/nanobind.h>

namespace lockflight::python {

/// acquire, release, both shared, and those of a `with` block.
extern const PyType_Slot lock_slots[];
/// The same of Units, which nobody shares.
extern const PyType_Slot units_slots[];

}  // namespace lockflight::python
