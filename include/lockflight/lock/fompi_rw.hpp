// fompi-rw, fompi-rw-backoff: the reader-writer lock of foMPI (called GBH after its authors). It
// has two stages of counters and retries.
//
// Source: "MPI passive target synchronization on a non-cache-coherent many-core" (SCC paper),
// section 4.2, and foMPI-RW, the comparison target of "High-Performance Distributed RMA Locks",
// section 5. A *global* counter, one for a set of locks (a window), holds `lockall count |
// exclusive count`. A *local* counter, one for each lock, holds `shared count | exclusive bit`.
//
// Invariants: an exclusive holder is counted in the global counter and has the exclusive bit of the
// local one; a shared holder is counted in the local counter only; a lock_all holder in the global
// counter only. A participant whose attempt fails subtracts what it added.
//
// Order: none. Fairness: none; writers can be overtaken by readers and by writers for ever.
//
// Cost in network operations, uncontended:
// | shared lock, its unlock    | 1 fetch-add, 1 add                               |
// | exclusive lock, its unlock | 1 fetch-add and 1 compare-swap, 2 adds           |
// | lock_all, unlock_all       | 1 fetch-add, 1 add, whatever the number of locks |
#pragma once

#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/rma/assert.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::lock {

struct fompi_rw_parameters {
  [[nodiscard]] static constexpr std::array<parameter<fompi_rw_parameters>, 0> all() { return {}; }

  [[nodiscard]] static constexpr rma::backoff back_off() { return rma::backoff::none(); }
};

struct fompi_rw_backoff_parameters {
  std::int64_t first_ns = 1'000;  // starts at 1 us and doubles, as the SCC paper measured
  std::int64_t most_ns = 64'000;

  [[nodiscard]] static constexpr auto all() {
    return std::array{
        parameter<fompi_rw_backoff_parameters>{
            "backoff_first_ns", [](auto& p) -> std::int64_t& { return p.first_ns; }, 0,
            1'000'000'000, "pause after the first failed attempt; it doubles from there"},
        parameter<fompi_rw_backoff_parameters>{
            "backoff_most_ns", [](auto& p) -> std::int64_t& { return p.most_ns; }, 0, 1'000'000'000,
            "longest pause between two attempts"},
    };
  }

  [[nodiscard]] constexpr rma::backoff back_off() const {
    return {static_cast<std::uint64_t>(first_ns), static_cast<std::uint64_t>(most_ns)};
  }
};

template <rma::port Port, class Parameters>
class basic_fompi_rw {
 public:
  using parameters = Parameters;

  struct cells {
    rma::nic_cell global;  // at rank 0 in the paper, here beside the lock
    rma::nic_cell local;   // at the home

    static cells place(rma::layout& in, const rma::topology&, const parameters&, rma::rank_t home) {
      const auto both = in.take<rma::nic_cell>(2).at(home);
      return {both, both + 1};
    }
  };

  basic_fompi_rw(rma::participant<Port>& me, const cells& where, const parameters& set)
      : port_(me.port()), cells_(where), set_(set) {}

  void lock() {
    for (rma::backoff b = set_.back_off(); !try_lock();) port_.pause(b.next());
  }

  /// Withdraws from the global counter when a lock_all or another holder is in the way.
  [[nodiscard]] bool try_lock() {
    const rma::word global = rma::fetch_add_now(port_, cells_.global, exclusive_unit);
    if (global / lockall_unit == 0 &&
        rma::compare_swap_now(port_, cells_.local, 0, exclusive_bit) == 0)
      return true;
    add_now(cells_.global, 0 - exclusive_unit);
    return false;
  }

  /// The paper writes 0. That would also erase the counts of readers that are about to withdraw, so
  /// the bit is subtracted. Both adds are posted together and complete at the flushes.
  void unlock() {
    port_.add(cells_.local, 0 - exclusive_bit);
    port_.add(cells_.global, 0 - exclusive_unit);
    port_.flush(cells_.local.home);
    if (cells_.global.home != cells_.local.home) port_.flush(cells_.global.home);
  }

  void lock_shared() {
    for (rma::backoff b = set_.back_off(); !try_lock_shared();) port_.pause(b.next());
  }

  [[nodiscard]] bool try_lock_shared() {
    const rma::word before = rma::fetch_add_now(port_, cells_.local, shared_unit);
    rma::ensure(before < most_sharing, "nobody leaves who has not come");
    if (before % shared_unit == 0) return true;
    add_now(cells_.local, 0 - shared_unit);
    return false;
  }

  void unlock_shared() { add_now(cells_.local, 0 - shared_unit); }

  /// A shared lock on every lock of the window at once: excludes all exclusive locks.
  void lock_all() {
    for (rma::backoff b = set_.back_off();; port_.pause(b.next())) {
      const rma::word global = rma::fetch_add_now(port_, cells_.global, lockall_unit);
      if (global % lockall_unit == 0) return;
      add_now(cells_.global, 0 - lockall_unit);
    }
  }

  void unlock_all() { add_now(cells_.global, 0 - lockall_unit); }

 private:
  static constexpr rma::word exclusive_bit = 1;                  // local: bit 0
  static constexpr rma::word shared_unit = 2;                    // local: the bits above
  static constexpr rma::word most_sharing = rma::word{1} << 32;  // more came from below zero
  static constexpr rma::word exclusive_unit = 1;                 // global: the low half
  static constexpr rma::word lockall_unit = rma::word{1} << 32;  // global: the high half

  // Flushed, else a waiter would see it only when we flush something else.
  void add_now(rma::nic_cell to, rma::word value) {
    port_.add(to, value);
    port_.flush(to.home);
  }

  Port& port_;
  cells cells_;
  parameters set_;
};

template <rma::port Port>
class fompi_rw : public basic_fompi_rw<Port, fompi_rw_parameters> {
 public:
  static constexpr facts about{
      .name = "fompi-rw",
      .what = kind::rw,
      .source =
          "GBH: MPI passive target synchronization on a non-cache-coherent many-core, "
          "section 4.2; foMPI-RW",
      .bytes_home = 16,
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
  };
  using basic_fompi_rw<Port, fompi_rw_parameters>::basic_fompi_rw;
};

template <rma::port Port>
class fompi_rw_backoff : public basic_fompi_rw<Port, fompi_rw_backoff_parameters> {
 public:
  static constexpr facts about{
      .name = "fompi-rw-backoff",
      .what = kind::rw,
      .source =
          "GBH with exponential back-off: MPI passive target synchronization on a "
          "non-cache-coherent many-core, sections 4.2 and 5",
      .bytes_home = 16,
      .bytes_per_node = 0,
      .bytes_per_participant = 0,
  };
  using basic_fompi_rw<Port, fompi_rw_backoff_parameters>::basic_fompi_rw;
};

}  // namespace lockflight::lock
