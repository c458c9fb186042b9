// Why something failed, as a text that can be sent to others.
#pragma once

#include <exception>
#include <string>

namespace lockflight {

/// What `f` throws, in words; empty if it throws nothing.
template <class F>
[[nodiscard]] std::string fault_in(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace lockflight
