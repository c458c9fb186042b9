// A worker process: it locks and unlocks random locks, changes the data that they guard, and
// reports a broken rule when it sees one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockflight/domain.hpp"
#include "tests/names/deaths/shared_state.hpp"

namespace lockflight::test {

/// The values that a worker is made from. Its next image gets them as arguments.
struct worker_start {
  int worker = 0;
  int memory = -1;   ///< the descriptor of the shared state; the next one is the program's
  std::string name;  ///< the name of the domain
  std::vector<int> numbers;
  std::uint64_t seed = 1;
  domain_options as;
};

/// The state of a worker in its own process.
struct worker {
  shared_state& all;
  const worker_start& start;
  worker_state& mine;
  std::vector<named_lock> handles;  ///< by the number of the lock
  std::size_t next_way_to_fork;
};

/// The main loop of a worker process. It ends when the shared state or an order says so.
[[noreturn]] void work(shared_state& all, const worker_start& start);

}  // namespace lockflight::test
