// What the windows of one group of processes share. MPI's libraries limit the number of
// communicators, and a program may have as many windows as that: so communicators and memory are
// made for a group, and a window's locks take a part of the memory.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lockflight/fabric/mpi.hpp"
#include "mpi_preload/words.hpp"

namespace lockflight::mpi_preload {

/// MPI's own limit was reached, not the program's fault nor this window's.
struct limit_reached : mpi::unavailable {
  using mpi::unavailable::unavailable;
};

/// A window's part of its group's memory, and the tag of its ranks' messages.
struct window_place {
  std::int32_t segment = -1;
  std::int32_t tag = -1;
  std::uint32_t first = 0;
  std::uint32_t words = 0;
  std::uint32_t segment_words = 0;  ///< of a segment that is to be made for it; 0: it is there
};

/// The same ranks in the same order, whatever the communicator.
///
/// The first rank alone decides which words a window gets, and says so to the others when the
/// window is made. Threads of a process may make windows of one group at a time, on several
/// communicators, in an order that differs from rank to rank.
class window_group {
 public:
  /// By what all ranks of a group know it: chosen by its first rank, at random.
  using name = std::array<std::uint64_t, 2>;

  /// Collective over `whole`. Throws mpi::unavailable or std::exception on all ranks alike.
  window_group(const name& called, MPI_Comm whole);
  window_group(const window_group&) = delete;
  window_group& operator=(const window_group&) = delete;

  [[nodiscard]] const name& called() const { return called_; }
  [[nodiscard]] const rma::topology& machine() const { return segment(0).machine(); }
  /// Whether a machine has more of the ranks than cores.
  [[nodiscard]] bool shares_cores() const { return shares_cores_; }
  [[nodiscard]] bool several_hosts() const { return several_hosts_; }
  [[nodiscard]] bool is_of(MPI_Comm whole) const;
  [[nodiscard]] MPI_Comm communicator() const { return PMPI_Comm_f2c(segment(0).communicator()); }

  /// On the first rank. A place whose tag is -1 if there are too many windows.
  [[nodiscard]] window_place reserve(std::uint32_t words);
  /// Makes the place's segment if it is a new one and there is no reason why not. The place's words
  /// are all zero when all ranks have called this and met. Collective. Throws limit_reached, on all
  /// ranks alike.
  void prepare(const window_place& at, const std::string& why_not);
  void give_back(const window_place& at);

  [[nodiscard]] mpi::port& port_of(const window_place& at) { return segment(at.segment).access(); }

 private:
  [[nodiscard]] mpi::membership& segment(std::int32_t number) const;
  void add_segment(const window_place& at, std::string why_not);
  [[nodiscard]] std::size_t segments() const;

  name called_;
  bool shares_cores_;
  bool several_hosts_;

  mutable std::mutex guard_;
  std::vector<std::unique_ptr<mpi::membership>> segments_;  // null: could not be made
  // The first rank's:
  std::deque<word_ranges> words_;  // [segment]
  std::uint32_t words_in_all_ = 0;
  std::vector<std::int32_t> free_tags_;
  std::int32_t next_tag_ = 0;
};

/// The group of a communicator, made if there is none, for one window more. Collective over
/// `whole`. Throws limit_reached or as window_group does.
[[nodiscard]] std::shared_ptr<window_group> join_group(MPI_Comm whole);

/// The place for one window more, in the group of `whole`, all zero. Collective over `whole`.
/// Throws as join_group does.
[[nodiscard]] window_place place_in(window_group& group, MPI_Comm whole, std::uint32_t words);

/// Undoes join_group, for a window that got no place.
void forget_join(const window_group& group);

/// The window at this place ends. No rank returns before all have come. A group without windows
/// is stored for the next one, unless there are many. Collective over the group.
void leave_group(std::shared_ptr<window_group> group, const window_place& at);

/// Ends the groups without windows. Collective over all processes.
void end_idle_groups();

}  // namespace lockflight::mpi_preload
