// The number that the kernel draws when the machine starts.
#pragma once

#include <fstream>
#include <string>

namespace lockflight {

/// Empty where /proc is not mounted.
[[nodiscard]] inline std::string boot_id() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  return text;
}

}  // namespace lockflight
