// A group whose memory is the MPI fabric's: its ranks are on several hosts, or cannot share memory
// of their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fabric/mpi/calls.hpp"
#include "mpi_preload/hosts_of_ranks.hpp"
#include "mpi_preload/window_group.hpp"

namespace lockflight::mpi_preload {

class group_by_mpi final : public window_group {
 public:
  /// Collective over `whole`, as is its end. Throws limit_reached, mpi::unavailable or
  /// std::exception, on all ranks alike. `why_not` is a fault of this rank alone, if there is one.
  [[nodiscard]] static std::shared_ptr<group_by_mpi> made(const name& called, MPI_Comm whole,
                                                          std::string why_not);
  group_by_mpi(const name& called, MPI_Comm whole, hosts_of_ranks hosts);

  [[nodiscard]] const rma::topology& machine() const override { return segment(0).machine(); }
  [[nodiscard]] mpi::port& port_of(const window_place& at) override {
    return segment(at.segment).access();
  }
  void prepare(const window_place& at, const segment_source& from, MPI_Comm whole) override;
  void combine(const window_place& at, void* values, int count, MPI_Datatype type,
               MPI_Op op) override;
  [[nodiscard]] bool has_segment(const window_place& at) override {
    return static_cast<std::size_t>(at.segment) < segments();
  }
  [[nodiscard]] bool ends_together() const override { return true; }

 private:
  [[nodiscard]] segment_source offer(const window_place&) override { return {}; }
  [[nodiscard]] mpi::membership& segment(std::int32_t number) const;
  void add_segment(const window_place& at, std::string why_not);
  [[nodiscard]] std::size_t segments() const;
  [[nodiscard]] MPI_Comm communicator() const {
    return mpi::detail::communicator_of(segment(0).communicator());
  }

  std::vector<std::unique_ptr<mpi::membership>> segments_;  // null: could not be made
};

}  // namespace lockflight::mpi_preload
