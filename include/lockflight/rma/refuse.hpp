// Errors of programs that use this library wrongly, with a text that has numbers.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <stdexcept>

#include "lockflight/rma/cxx20.hpp"

namespace lockflight::rma {

/// Throws an Error whose text is made as by printf, at most 255 bytes of it. Strings that are put
/// together in a header take each file that includes it a tenth of its time to compile.
template <class Error = std::invalid_argument>
[[noreturn, gnu::cold, gnu::noinline, gnu::format(printf, 1, 2)]] void refuse(const char* format,
                                                                              ...) {
  char text[256];
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  throw Error(text);
}

}  // namespace lockflight::rma
