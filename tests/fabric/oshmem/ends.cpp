// Ends as its argument says: `throws`, in the body of the last rank, or with this exit code on all
// ranks after SHMEM is finalised.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "lockflight/fabric/oshmem.hpp"

namespace oshmem = lockflight::oshmem;

int main(int, char** argv) {
  const std::string how = argv[1];
  {
    oshmem::environment world;
    const auto machine = oshmem::discover(world, world.size()).machine;
    oshmem::run_ports(world, {.machine = machine}, [&](oshmem::port& p) {
      if (how == "throws" && p.rank() == p.machine().ranks() - 1)
        throw std::runtime_error("no cheese");
    });
  }
  return std::atoi(how.c_str());
}
