// What flight-rw decides when a turn of writers ends: how many writers the next one may have, and
// in which cells readers count themselves. The gates carry both, so that it costs nothing to say
// so.
//
// With preference for readers a writer closes the gates when it has seen nobody read, and each
// writer opens them again; for writers, they stay closed as long as flight is passed on.
//
// A closing of the gates costs the more the more cells it looks at. A turn that is long beside that
// is halved, so that readers wait less, and one that is cut short by its own T_W is doubled again,
// never beyond the parameter. And as long as few readers wait when turns end, for each writer that
// they had, more of them share a cell: writers then have fewer to look at. That changes when gates
// open for the next epoch, since nobody is active then; those who parked stay where they are, and
// the next writer looks at all cells.
#pragma once

#include <cstdint>

#include "lockflight/lock/flight_rw/gate.hpp"
#include "lockflight/lock/flight_rw/layout.hpp"
#include "lockflight/lock/flight_rw/parameters.hpp"
#include "lockflight/lock/flight_rw/writers_turn.hpp"

namespace lockflight::lock {

/// What the last writer of a turn knows of it.
struct ended_turn {
  rma::word writers = 0;  ///< that have had the lock
  rma::word waiting = 0;  ///< readers that wait
  rma::word cells = 0;    ///< that a closing looks at
};

struct turn_policy {
  rma::word t_w = 0;
  bool adapts_t_w = false;
  bool adapts_cells = false;
  rma::word worth = 0;             // writers of a turn that are worth the look at a cell
  rma::word reads = 0;             // readers that wait for each writer of a turn, if many read
  rma::word against = 0;           // turns in a row that must speak against the cells in use
  std::uint64_t readers_turn = 0;  // nanoseconds, at least, if readers come

  [[nodiscard]] static turn_policy of(const flight_rw_parameters& set, const reader_cells& cells,
                                      const rma::topology& machine, bool shares_cores) {
    using p = flight_rw_parameters;
    constexpr std::int64_t many_reads = 8;
    const std::int64_t t_w = set.preference == p::readers         ? 1
                             : set.preference == p::writers_first ? writers_turn::most
                                                                  : set.t_w;
    // On one node a cell more is a load more, and hardly worth a word.
    const std::int64_t reads = set.reads != 0 ? set.reads : machine.nodes() == 1 ? 0 : many_reads;
    return {.t_w = static_cast<rma::word>(t_w),
            .adapts_t_w = set.adaptive != 0 && set.preference == p::fair,
            .adapts_cells = cells.two_kinds() && reads != 0,
            .worth = static_cast<rma::word>(set.worth),
            .reads = static_cast<rma::word>(reads),
            .against = static_cast<rma::word>(set.against),
            .readers_turn = length_of_readers_turn(set, cells, machine, shares_cores)};
  }

  /// T_W in force.
  [[nodiscard]] constexpr rma::word most_writers(gate now) const { return t_w >> now.halved(); }

  /// Whether it matters for `adapted` how many readers wait.
  [[nodiscard]] constexpr bool asks_who_waits(gate now, const ended_turn& seen) const {
    return adapts_cells || now.halved() > 0 || seen.writers >= worth * seen.cells;
  }
  /// The gate for the readers' turn, when it has been opened as `next`.
  [[nodiscard]] constexpr gate adapted(gate next, const ended_turn& seen) const {
    if (adapts_t_w) next = next.with_halved(halved(next, seen));
    return adapts_cells ? placed(next, seen) : next;
  }

 private:
  [[nodiscard]] static std::uint64_t length_of_readers_turn(const flight_rw_parameters& set,
                                                            const reader_cells& cells,
                                                            const rma::topology& machine,
                                                            bool shares_cores) {
    if (set.readers_turn == flight_rw_parameters::no_turn) return 0;
    if (set.readers_turn != 0) return static_cast<std::uint64_t>(set.readers_turn);
    // Who stays away there lets another rank run, and is back much later.
    return shares_cores ? 0 : closing_of_gates(cells, machine);
  }
  // About the nanoseconds that it takes to close the gates and to open them again: a shorter turn
  // is not worth that, and a longer one brings hardly more writers. Without deputies, who are not
  // always there: turns as short as they would allow have a tenth less throughput.
  [[nodiscard]] static std::uint64_t closing_of_gates(const reader_cells& cells,
                                                      const rma::topology& machine) {
    constexpr int each = 50;
    constexpr int round_trips = 8'000;
    const int others = machine.nodes() - 1;
    const int all = others > 0 ? round_trips + 2 * each * others : 0;
    return static_cast<std::uint64_t>(all + each * cells.looks(machine));
  }

  [[nodiscard]] constexpr rma::word halved(gate now, const ended_turn& seen) const {
    const rma::word enough = worth * seen.cells;
    const bool too_short = seen.writers >= most_writers(now) && 4 * seen.writers <= enough;
    if (seen.waiting == 0 || too_short) return now.halved() - (now.halved() > 0 ? 1 : 0);
    return now.halved() + (seen.writers >= enough && most_writers(now) > 1 ? 1 : 0);
  }

  [[nodiscard]] constexpr gate placed(gate next, const ended_turn& seen) const {
    const bool speaks_against = next.gathered() ? seen.waiting >= (2 * reads - 1) * seen.writers
                                                : seen.waiting < reads * seen.writers;
    if (!speaks_against) return next.with_against(0);
    if (next.against() + 1 < against) return next.with_against(next.against() + 1);
    return next.in_the_other_cells();
  }
};

}  // namespace lockflight::lock
