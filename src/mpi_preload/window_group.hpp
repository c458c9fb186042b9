// The state that the windows of one group of processes share: the memory in which their locks lie,
// and a port on it. A program may have thousands of windows; each takes a part of its group's
// memory.
//
// The memory is the processes' own if all are on one host (group_on_host.hpp): no object of MPI's
// is made, so the first window costs a few small collective calls and later ones mostly none, MPI's
// limits are not touched, and nothing of the drop-in is left for MPI_Finalize. On several hosts the
// memory is the fabric's, which is made of communicators and windows (group_by_mpi.hpp).
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "lockflight/fabric/mpi.hpp"
#include "mpi_preload/host_segment.hpp"
#include "mpi_preload/words.hpp"

namespace lockflight::mpi_preload {

/// MPI's own limit was reached, not the program's fault nor this window's.
struct limit_reached : mpi::unavailable {
  using mpi::unavailable::unavailable;
};

/// A window's part of its group's memory, and the tag of its ranks' messages.
struct window_place {
  std::uint32_t serial = 0;  ///< differs for each place that the group has given; 0: no place
  std::int32_t segment = -1;
  std::int32_t tag = -1;
  std::uint32_t first = 0;
  std::uint32_t words = 0;
  std::uint32_t segment_words = 0;  ///< of a segment that is to be made for it; 0: it is there
};

/// The place at which the other ranks find the memory of a new segment.
struct segment_source {
  std::int32_t process = -1;
  std::int32_t descriptor = -1;
};

/// The place that the first rank reserves for a window.
struct reservation {
  window_place at;
  segment_source from{};  ///< of the place's segment, if that is a new one
};

/// The observations of window locks that at least one rank wants: then all ranks take part.
struct observation {
  bool counts = false;
  bool hangs = false;
};

/// The facts that the ranks of a group have in common by their hosts and settings. None of them
/// changes while the ranks run.
struct common_settings {
  bool on_one_host = false;  ///< and no rank asks for another topology
  bool one_thread = false;   ///< no rank calls MPI by several threads at the same time
  observation wanted;
};

struct window_offer;

/// The same ranks in the same order, whatever the communicator.
///
/// The first rank alone decides which words a window gets, and sends this to the others when the
/// window is made. Threads of a process may make windows of one group at a time, on several
/// communicators, in an order that differs from rank to rank.
class window_group {
 public:
  /// The name by which all ranks of a group know it: chosen by its first rank, at random.
  using name = std::array<std::uint64_t, 2>;

  virtual ~window_group();
  window_group(const window_group&) = delete;
  window_group& operator=(const window_group&) = delete;

  [[nodiscard]] const name& called() const { return called_; }
  [[nodiscard]] bool several_hosts() const { return several_hosts_; }
  [[nodiscard]] bool is_of(MPI_Group ranks) const;
  [[nodiscard]] bool is_first_rank() const { return is_first_; }

  [[nodiscard]] virtual const rma::topology& machine() const = 0;
  [[nodiscard]] virtual mpi::port& port_of(const window_place& at) = 0;

  /// Reserves a place, on the first rank. The place's tag is -1 if there are too many windows.
  /// Throws as offer does, and then nothing is reserved.
  [[nodiscard]] reservation reserve(std::uint32_t words);
  /// The same without a new segment: a tag of -1 if those that are there have no room.
  [[nodiscard]] window_place reserve_in_segments(std::uint32_t words);
  /// True if the place's segment is there. Where a group does not end together, all ranks have it
  /// once one of them has.
  [[nodiscard]] virtual bool has_segment(const window_place& at) = 0;
  /// Makes the place's segment if it is a new one and there is no reason why not, and zeroes this
  /// rank's words. All ranks must have met before one uses them. Collective over `whole`. Throws
  /// mpi::unavailable, on all ranks alike.
  virtual void prepare(const window_place& at, const segment_source& from, MPI_Comm whole) = 0;
  /// Gives the place back: the first rank may give it to another window.
  void give_back(const window_place& at);

  /// True if the group's ranks agree about a window through the memory of the group, by the calls
  /// that follow, in place of MPI's collective calls. The result is the same on all ranks, unless
  /// the first one has dropped the group meanwhile. If it is true, the calls come in the same order
  /// on all ranks, since each rank has one thread that makes windows.
  [[nodiscard]] virtual bool meets_in_memory() const { return false; }
  /// True if all ranks give the same number, which is not 0. False, too, if the first rank has
  /// dropped the group. Collective.
  [[nodiscard]] virtual bool all_have(std::uint64_t number);
  /// The first rank's offer to all ranks. False if it has dropped the group. Collective.
  [[nodiscard]] virtual bool broadcast(window_offer& offer);
  /// True if `holds` is true on all ranks. Each rank then sees the earlier writes of the others.
  /// Collective.
  [[nodiscard]] virtual bool holds_on_all(bool holds);
  /// Returns the settings that the group's ranks have in common. For a group that meets in memory.
  [[nodiscard]] virtual common_settings settings_in_common() const { return {}; }

  /// Combines `count` values of every rank in place, on every rank. No rank returns before all have
  /// come. Operations must commute.
  virtual void combine(const window_place& at, void* values, int count, MPI_Datatype type,
                       MPI_Op op) = 0;

  /// Called by each rank when it has combined its last values of a window: the first rank returns
  /// when all ranks have called, so that it may give the place to another window. A group that ends
  /// together meets when a window leaves it, and so has nothing to do here.
  virtual void report_to_first(const window_place& /*at*/) {}

  /// True if the group's end is collective. Otherwise each rank may drop the group when it has no
  /// windows there, once the first rank has dropped it.
  [[nodiscard]] virtual bool ends_together() const = 0;
  /// Announces that the first rank drops the group. is_at_its_end() is true from then on.
  virtual void announce_end() {}
  [[nodiscard]] virtual bool is_at_its_end() const { return false; }

 protected:
  /// A segment is as large as all before it together, so there are few.
  static constexpr std::size_t most_segments = 64;

  /// `first_words` are those of the segment that the group begins with; 0: it has none yet. The
  /// first `own_words` of a segment are for no window, nor is its first cache line.
  window_group(const name& called, MPI_Comm whole, bool several_hosts, std::uint32_t first_words,
               std::uint32_t own_words = 0);

  /// On the first rank, with `guard_` held: makes the source of a new segment for the other ranks.
  [[nodiscard]] virtual segment_source offer(const window_place& at) = 0;
  /// On the first rank: gives no more of this segment to windows, since it could not be made.
  void forget_segment(std::size_t number);

  // A first segment for some dozens of small windows.
  static constexpr std::uint32_t usual_words = 1u << 15;

  mutable std::mutex guard_;  // of what follows, and of the derived class's segments

 private:
  name called_;
  MPI_Group ranks_ = MPI_GROUP_NULL;
  bool is_first_;
  bool several_hosts_;
  std::uint32_t first_of_windows_;  // in each segment

  // With `guard_` held, on the first rank.
  [[nodiscard]] bool has_tag() const;
  [[nodiscard]] std::int32_t take_tag();
  void identify(window_place& at);
  [[nodiscard]] window_place take_from_segments(std::uint32_t words);

  // The first rank's:
  std::deque<std::optional<word_ranges>> words_;  // [segment]; none of one that could not be made
  std::uint32_t words_in_all_ = 0;
  std::vector<std::int32_t> free_tags_;
  std::int32_t next_tag_ = 0;
  std::uint32_t last_serial_ = 0;
};

}  // namespace lockflight::mpi_preload
