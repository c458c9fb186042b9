// C49: an operation of a port throws in the middle of an acquire or of a release. Each operation of
// each lock is the one that throws: of a participant that is alone, and of one on another node than
// the home's, beside a participant that acquires as well.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "lockflight/lock/all.hpp"
#include "lockflight/lock/concepts.hpp"
#include "lockflight/rma/barrier.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/throwing.hpp"

namespace lockflight::test {
namespace {

using failing = throwing<shm::port>;

template <class Lock>
void acquire_and_release(Lock& handle, bool shared) {
  if constexpr (lock::shared<Lock>)
    if (shared) {
      handle.lock_shared();
      return handle.unlock_shared();
    }
  handle.lock();
  handle.unlock();
}

/// Returns true if the operation has thrown. Then the handle is gone.
template <class Lock>
bool acquires_with_a_failure(failing& its, std::optional<Lock>& handle, bool shared,
                             std::uint64_t number) {
  its.throw_at(number);
  try {
    acquire_and_release(*handle, shared);
    its.throw_at(0);
    return false;
  } catch (const port_failed&) {
  }
  handle.reset();
  require(its.operations() == number, "the lock makes no operation after one that threw");
  return true;
}

/// A run of `ranks` ranks: operation `number` of the last one throws, and the others acquire once.
/// Returns the run's error, "" if no rank has failed.
template <class Lock>
std::string run_with_a_failure(int ranks, bool shared, std::uint64_t number) {
  const auto machine = rma::topology::balanced({ranks, 1});
  const shm::config config{.machine = machine, .threads = true};
  try {
    shm::run_ports(config, [&](shm::port& bare) {
      failing its(bare);
      rma::participant<failing> me(its, config.words_per_rank);
      const typename Lock::parameters set{};
      const auto where = Lock::cells::place(me.cells(), machine, set, 0);
      rma::barrier together(me);
      std::optional<Lock> handle(std::in_place, me, where, set);
      if (me.rank() != ranks - 1)
        acquire_and_release(*handle, false);
      else if (acquires_with_a_failure(its, handle, shared, number))
        throw std::runtime_error("failed as expected");
      together.arrive_and_wait();  // the home serves until then
    });
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

template <class Lock>
void fail_in_each_operation(int ranks, bool shared) {
  constexpr std::uint64_t most = 200;
  SCOPED_TRACE(std::string(Lock::about.name) + (shared ? ", shared" : ""));
  std::uint64_t number = 1;
  for (; number < most; ++number) {
    const std::string says = run_with_a_failure<Lock>(ranks, shared, number);
    if (says.empty()) break;
    EXPECT_NE(says.find("rank " + std::to_string(ranks - 1)), std::string::npos) << says;
    EXPECT_NE(says.find("failed as expected"), std::string::npos) << says;
  }
  EXPECT_GT(number, 2u) << "an acquire and a release have operations";
  EXPECT_LT(number, most);
}

TEST(failing_port, C49_an_operation_that_throws_is_the_last_of_every_lock) {
  lock::all::for_each([]<template <class> class Lock>(lock::family<Lock>) {
    fail_in_each_operation<Lock<failing>>(1, false);
    if constexpr (lock::shared<Lock<failing>>) fail_in_each_operation<Lock<failing>>(1, true);
  });
}

TEST(failing_port, C49_an_operation_that_throws_ends_the_run_of_the_others) {
  lock::all::for_each([]<template <class> class Lock>(lock::family<Lock>) {
    fail_in_each_operation<Lock<failing>>(2, false);
  });
}

}  // namespace
}  // namespace lockflight::test
