// A table that many read and few change: lockflight::shared_mutex, with std's guards.
//
// Rank 0 changes it now and then; the others read all of it and see every change as a whole.
#include <array>
#include <cstdio>
#include <lockflight/lockflight.hpp>
#include <lockflight/rma/barrier.hpp>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>

namespace rma = lockflight::rma;
namespace shm = lockflight::shm;

namespace {

constexpr std::uint32_t entries = 16;
constexpr rma::word versions = 100;

/// The table is whole if all entries are of one version. Returns which.
rma::word read_table(shm::port& port, rma::plain_cell table) {
  std::array<rma::word, entries> seen{};
  for (std::uint32_t i = 0; i < entries; ++i) port.get(table + i, seen[i]);
  port.flush(table.home);  // the results are there now
  for (const rma::word version : seen)
    if (version != seen[0]) throw std::runtime_error("read a table that is half changed");
  return seen[0];
}

void write_table(shm::port& port, rma::plain_cell table, rma::word version) {
  for (std::uint32_t i = 0; i < entries; ++i) port.put(table + i, version);
  port.flush(table.home);  // unlock passes on what is complete, and does not wait for the rest
}

void work(rma::participant<shm::port>& me) {
  lockflight::shared_mutex mutex(me);
  const auto table = me.cells().take<rma::plain_cell>(entries);
  rma::barrier all(me);
  all.arrive_and_wait();

  long reads = 0;
  if (me.rank() == 0) {
    for (rma::word version = 1; version <= versions; ++version) {
      const std::unique_lock hold(mutex);
      write_table(me.port(), table, version);
    }
  } else {
    for (rma::word version = 0; version < versions; ++reads) {
      const std::shared_lock hold(mutex);
      version = read_table(me.port(), table);
    }
  }

  all.arrive_and_wait();
  if (me.rank() == 1) std::printf("rank 1 read the table %ld times, always whole\n", reads);
}

}  // namespace

int main() {
  shm::run({.machine = rma::topology::flat(4)}, work);
  return 0;
}
