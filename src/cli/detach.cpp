#include "cli/detach.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "cli/proc_files.hpp"

namespace lockflight::cli {

std::vector<int> open_descriptors() {
  std::vector<int> all = numbers_in("/proc/self/fd");
  // The list has the descriptor of the folder, too, which is closed by now.
  std::erase_if(all, [](int each) { return each <= STDERR_FILENO || fcntl(each, F_GETFD) < 0; });
  return all;
}

void detach(const std::vector<int>& of_caller) {
  setsid();
  for (const int each : of_caller) close(each);
  const descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (nothing) dup2(nothing.get(), each);
  static_cast<void>(chdir("/"));
}

}  // namespace lockflight::cli
