// The MPI side of a port.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "fabric/mpi/calls.hpp"
#include "fabric/network/operations.hpp"

namespace lockflight::mpi::detail {

using fabric::remote_kind;

/// True if MPI_Win_flush spins without yielding. Open MPI yields by itself where mpirun finds more
/// ranks than cores, and its operations with a request take several times as long then.
#if defined(OPEN_MPI)
constexpr bool spins_in_flush = false;
#else
constexpr bool spins_in_flush = true;
#endif

/// Posted operations, messages and progress of one rank. There are two ways to complete operations:
///
/// - blocking: MPI_Fetch_and_op and its like, then MPI_Win_flush. The quickest where each rank has
///   a core of its own.
/// - patient: operations that have a request, tested with MPI_Test, yielding between tests.
///   The MPI_Win_flush at the end then finds nothing left. MPICH spins inside MPI_Win_flush without
///   ever yielding; where the target must make progress and waits for our core, every operation
///   would take a time slice of the kernel.
class link final : public fabric::network {
 public:
  /// `messages` carries only messages of links; `run` distinguishes them from those of earlier
  /// links.
  link(const communicator& messages, MPI_Win exposed, bool patient, rma::word run = 0);
  /// Waits until all messages have been sent.
  ~link() override;
  link(const link&) = delete;
  link& operator=(const link&) = delete;

  void post(remote_kind kind, rma::rank_t home, std::uint32_t index, rma::word value,
            rma::word* result) override;
  void post_lines(rma::rank_t home, std::uint32_t index, std::span<rma::word> results) override;
  void post_compare_swap(rma::rank_t home, std::uint32_t index, rma::word expected,
                         rma::word desired, rma::word* result) override;
  void complete(rma::rank_t home) override;
  void complete_all() override;
  [[nodiscard]] bool pending() const override { return !under_way_.empty(); }

  void send(rma::rank_t to, const rma::message& m) override;
  [[nodiscard]] bool try_receive(rma::message& got) override;

  void progress() override;

 private:
  struct operation {
    rma::word value = 0;
    rma::word compare = 0;
    rma::word ignored = 0;  ///< the result of an operation that has none
    rma::rank_t home = -1;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  /// Three words and the number of the run.
  using envelope = std::array<rma::word, 4>;
  struct outgoing {
    envelope content;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  operation& begin(rma::rank_t home);
  [[nodiscard]] MPI_Datatype column(std::size_t lines);
  void wait_patiently(rma::rank_t home);

  const communicator& messages_;
  rma::word run_;
  MPI_Win exposed_;
  bool patient_;
  fabric::detail::operations<operation> under_way_;
  std::deque<outgoing> sent_;
  std::map<std::size_t, MPI_Datatype> columns_;  // [n]: a word of each of n cache lines
};

}  // namespace lockflight::mpi::detail
