// The state of a process, as the kernel gives it.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace lockflight::test {

/// The state of a process as the kernel gives it: 'R' runs, 'S' sleeps, 'Z' is dead and not reaped;
/// 0 if there is no such process.
[[nodiscard]] inline char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return 0;
  const std::size_t name_end = text.rfind(')');  // names may contain anything
  return name_end + 2 < text.size() ? text[name_end + 2] : '\0';
}

}  // namespace lockflight::test
