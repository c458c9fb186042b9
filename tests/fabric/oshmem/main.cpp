// main() of the tests that an OpenSHMEM launcher starts.
#include "lockflight/fabric/oshmem.hpp"
#include "tests/support/launched_main.hpp"

int main(int argc, char** argv) {
  namespace oshmem = lockflight::oshmem;
  return lockflight::test::launched_main<oshmem::environment>(argc, argv, oshmem::discover,
                                                              oshmem::run_ports);
}
