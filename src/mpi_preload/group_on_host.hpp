// A group whose ranks are all on one host. Its memory is the ranks' own and has no name, and no
// object of MPI's is needed for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>

#include "base/descriptor.hpp"
#include "mpi_preload/host_segment.hpp"
#include "mpi_preload/window_group.hpp"

namespace lockflight::mpi_preload {

/// Thrown if the ranks cannot share memory of their own, though they are on one host.
struct cannot_share : std::exception {};

class group_on_host final : public window_group {
 public:
  /// `cores`: the number of cores that the ranks may use together. Not collective.
  group_on_host(const name& called, MPI_Comm whole, int cores, const common_settings& common);
  ~group_on_host() override;

  [[nodiscard]] const rma::topology& machine() const override { return machine_; }
  [[nodiscard]] mpi::port& port_of(const window_place& at) override;
  /// Throws cannot_share.
  void prepare(const window_place& at, const segment_source& from, MPI_Comm whole) override;
  [[nodiscard]] bool meets_in_memory() const override;
  [[nodiscard]] bool all_have(std::uint64_t number) override;
  [[nodiscard]] bool broadcast(window_offer& offer) override;
  [[nodiscard]] bool holds_on_all(bool holds) override;
  [[nodiscard]] common_settings settings_in_common() const override { return common_; }
  void combine(const window_place& at, void* values, int count, MPI_Datatype type,
               MPI_Op op) override;
  void report_to_first(const window_place& at) override;
  [[nodiscard]] bool has_segment(const window_place& at) override;
  [[nodiscard]] bool ends_together() const override { return false; }
  void announce_end() override;
  [[nodiscard]] bool is_at_its_end() const override;

 private:
  struct place_of_segment {
    std::unique_ptr<host_segment> is;  // null: not there yet
    bool failed = false;               // the segment never will be there
    descriptor offered{};              // at the first rank, until all have opened it
  };
  /// Throws std::system_error.
  [[nodiscard]] segment_source offer(const window_place& at) override;
  [[nodiscard]] host_segment* find(std::int32_t number) const;
  [[nodiscard]] bool has_failed(std::int32_t number) const;
  [[nodiscard]] std::unique_ptr<host_segment> attached(const window_place& at,
                                                       const segment_source& from);
  void add_segment(const window_place& at, const segment_source& from, MPI_Comm whole);

  rma::topology machine_;
  int rank_;
  common_settings common_;
  mpi::wait_policy waiting_;
  std::unique_ptr<fabric::network> link_;
  std::array<place_of_segment, most_segments> segments_;
};

/// A number of this process's host, which the process finds out by itself, once. Processes with the
/// same number may be able to share memory.
[[nodiscard]] std::uint64_t number_of_this_host();

}  // namespace lockflight::mpi_preload
