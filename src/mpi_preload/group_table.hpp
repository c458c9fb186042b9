// The groups of this process, with their states. docs/windows.svg draws these; the functions whose
// comments begin with an arrow lead from one to another.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "mpi_preload/window_grant.hpp"

namespace lockflight::mpi_preload {

/// All groups that are not absent. Every member is called with `guard` held.
struct group_table {
  static constexpr std::uint64_t most_idle = 8;
  static constexpr std::size_t most_spares = 4;

  /// Windows join only a group that is open. The picture calls an open group in_use while it has
  /// windows, and idle otherwise.
  enum class state : std::uint8_t {
    being_made,  ///< by a thread of this process, and by the other ranks
    open,
    ending,  ///< at the first rank: its last window has ended, and the ranks decide whether it ends
    closed,  ///< its ranks could not share memory once more
  };
  struct row {
    std::shared_ptr<window_group> group{};  // null while it is being made
    state is = state::being_made;
    std::uint64_t windows = 0;
    // The newest comes last. No vector: adding one must not fail on one rank alone.
    std::array<owned_window, most_spares> spares{};
    std::size_t spare_count = 0;
  };

  std::mutex guard;
  std::map<window_group::name, row> rows;

  /// How many groups have no windows, whatever their state.
  [[nodiscard]] std::uint64_t without_windows() const;
  /// The row of the group that a window of these ranks joins; null if there is none.
  [[nodiscard]] row* row_of(MPI_Comm whole);

  /// absent -> being_made. The row counts the first window.
  void begin(const window_group::name& called) { rows.emplace(called, row{.windows = 1}); }
  /// being_made -> in_use.
  void open(const std::shared_ptr<window_group>& made);
  /// being_made -> absent. It could not be made.
  void forget(const window_group::name& called) { rows.erase(called); }
  /// idle -> in_use. A window more.
  static void count_in(row& one) { ++one.windows; }
  /// in_use -> idle. A window less. The first rank of a group on this host announces that it drops
  /// the group, if many are idle.
  void count_out(row& one);
  /// in_use -> closed. The group stays until its windows have ended.
  static void close(row& one) { one.is = state::closed; }
  /// idle, closed -> absent. Of groups on this host, of which each rank drops its own.
  void drop_ended();
  /// in_use -> ending. A window less in a group that ends together. If it was the last one, no
  /// window joins the group on the first rank until the ranks have decided; then this returns true.
  /// On the other ranks the group is idle.
  [[nodiscard]] static bool begin_to_end(row& one);
  /// ending -> idle. Few are idle.
  static void stay(row& one) { one.is = state::open; }
  /// ending -> absent. Many are idle. The end of the group itself is collective.
  void end(const window_group::name& called) { rows.erase(called); }
};

/// The groups of this process. They are never destroyed: after MPI_Finalize no group can end.
[[nodiscard]] group_table& known_groups();

}  // namespace lockflight::mpi_preload
