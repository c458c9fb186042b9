// Four processes count, one at a time. They share a name, "count", and the memory that it guards; a
// process that was killed while it holds would free the lock, and tell the next one.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <lockflight/domain.hpp>
#include <mutex>

int main() {
  constexpr const char* name = "examples-of-cpp";
  auto* const count = static_cast<int*>(
      mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int process = 0; process < 4; ++process) {
    if (fork() != 0) continue;
    // Made after the fork: what its parent has open a child cannot use.
    lockflight::named_mutex counting(lockflight::domain::open(name), "count");
    for (int i = 0; i < 1000; ++i) {
      const std::scoped_lock hold(counting);
      ++*count;
    }
    return 0;
  }
  while (wait(nullptr) > 0) {
  }
  std::cout << *count << '\n';
  lockflight::domain::remove(name);
}
