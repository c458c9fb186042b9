// main() of the tests whose ranks meet at a rendezvous.
#include "lockflight/fabric/libfabric.hpp"
#include "tests/support/launched_main.hpp"

int main(int argc, char** argv) {
  namespace libfabric = lockflight::libfabric;
  return lockflight::test::launched_main<libfabric::environment>(argc, argv, libfabric::discover,
                                                                 libfabric::run_ports);
}
