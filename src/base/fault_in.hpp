// Why something failed, as a text that can be sent to others.
#pragma once

#include <exception>
#include <new>
#include <string>

namespace lockflight {

/// The text of the exception that `f` throws; empty if it throws none.
template <class F>
[[nodiscard]] std::string fault_in(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    try {
      return e.what();
    } catch (const std::bad_alloc&) {
      // Short enough for a string that takes no memory: the caller's other ranks wait to be told.
      return "no memory";
    }
  }
  return "";
}

}  // namespace lockflight
