// The durations and clocks of <chrono>, without its calendar: that prints itself, and so brings the
// streams of the C++ library, which take a sixth of the time that a small program takes to compile.
#pragma once

#include <version>

#include "lockflight/rma/cxx20.hpp"

#if defined(__GLIBCXX__) && __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif
