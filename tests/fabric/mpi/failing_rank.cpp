// A run in which the last rank throws while the others wait for a value that never comes: the
// launch must end within seconds, with exit code 3 and the rank's message (C36). program_test.py
// runs it.
#include <cstdio>
#include <stdexcept>

#include "lockflight/fabric/mpi.hpp"

int main() {
  namespace rma = lockflight::rma;
  const lockflight::mpi::environment mpi;
  const int ranks = mpi.size();
  lockflight::mpi::run({.machine = rma::topology::balanced({ranks, 1})}, [ranks](auto& me) {
    const auto never = me.cells().template take<rma::plain_cell>(1).at(me.rank());
    if (me.rank() == ranks - 1) throw std::runtime_error("the last one has had enough");
    me.port().await(never, rma::equals(1));
  });
  std::puts("ended well, which it cannot");
  return 0;
}
