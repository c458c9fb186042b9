// Domains as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

namespace lockflight::python {

/// The class Domain, what is attached to, removed and listed, and the defaults.
void add_domains(nanobind::module_& to);

}  // namespace lockflight::python
