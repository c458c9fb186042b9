// main() of the tests whose ranks meet at a rendezvous.
#include "lockflight/fabric/ucx.hpp"
#include "tests/support/launched_main.hpp"

int main(int argc, char** argv) {
  namespace ucx = lockflight::ucx;
  return lockflight::test::launched_main<ucx::environment>(argc, argv, ucx::discover,
                                                           ucx::run_ports);
}
