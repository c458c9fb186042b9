#include "tests/names/deaths/shared_state.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

namespace lockflight::test {

shared_state& map_shared(int memory) {
  void* const at =
      mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  return *static_cast<shared_state*>(at);
}

void report(shared_state& all, const std::string& what) {
  if (all.broken.fetch_add(1) == 0) what.copy(all.what, sizeof all.what - 1);
}

}  // namespace lockflight::test
