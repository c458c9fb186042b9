// The files that a command writes, opened before it starts.
#pragma once

#include "lab/bench/plan/launch.hpp"
#include "tool/usage.hpp"

namespace lockflight::lab {

/// Calls `open`. In a launch (null: none) only one process writes and calls it; if it throws, all
/// processes do, since the others would wait for this one in what comes next. Collective.
template <class Open>
void open_files(bench::launch* launched, Open open) {
  if (launched == nullptr) return open();
  try {
    if (bench::speaks()) open();
  } catch (...) {
    static_cast<void>(launched->all(false));
    throw;
  }
  if (!launched->all(true)) throw tool::usage_error("rank 0 cannot write its files");
}

}  // namespace lockflight::lab
