// The benchmark's errors for requests that it does not accept.
#pragma once

#include <string>

#include "lab/bench/bench.hpp"

namespace lockflight::bench {

/// Empty if it accepts the request.
inline std::string refusal(const request& r) {
  try {
    validate(r);
  } catch (const bad_request& e) {
    return e.what();
  }
  return "";
}

/// The same for a request that was good before the change.
template <class Change>
[[nodiscard]] std::string refusal(request r, Change change) {
  change(r);
  return refusal(r);
}

}  // namespace lockflight::bench
