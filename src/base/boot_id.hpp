// The number that the kernel draws when the machine starts.
#pragma once

#include <string>

#include "base/whole_file.hpp"

namespace lockflight {

/// Empty where /proc is not mounted.
[[nodiscard]] inline std::string boot_id() {
  const std::string text = text_if_readable("/proc/sys/kernel/random/boot_id");
  return text.substr(0, text.find('\n'));
}

}  // namespace lockflight
