// Participants on MPI.
#include "lockflight/fabric/mpi.hpp"
#include "bindings/c/config.hpp"
#include "bindings/c/error.hpp"
#include "bindings/c/joined.hpp"
#include "bindings/c/tuned.hpp"

namespace lockflight::capi {
namespace {

struct mpi_place final : place {
  mpi::membership members;
  explicit mpi_place(const mpi::config& what) : members(what) {}
  [[nodiscard]] fabric::networked_port& port() override { return members.access(); }
};

/// The first rank's profile, on all ranks: some parameters say where a lock's words lie.
[[nodiscard]] profile profile_of_first(int rank, const mpi::config& what) {
  const std::string mine = rank == 0 ? profile_or_warning().text() : "";
  return profile::parse(mpi::first_rank_says(mine, *what.communicator), "LOCKFLIGHT_PROFILE");
}

[[nodiscard]] mpi::config config_of(int comm, const lockflight_config& what) {
  refuse_members_of_runs(what);
  rma::topology machine = levels_or(what, mpi::nodes_of(comm), "the communicator");
  // The program uses MPI too, and its one-sided operations may need the progress of a rank that
  // waits here.
  return {.machine = std::move(machine),
          .waiting = waiting_of(what),
          .words_per_rank = words_of(what),
          .communicator = comm,
          .serves = true};
}

}  // namespace
}  // namespace lockflight::capi

int lockflight_join_mpi_fint(int comm, const lockflight_config* config,
                             lockflight_participant** me) {
  namespace capi = lockflight::capi;
  return capi::guarded([&] {
    auto& out = capi::need(me, "me", "where to put the participant");
    try {
      const lockflight::mpi::config what = capi::config_of(comm, capi::or_defaults(config));
      auto place = std::make_unique<capi::mpi_place>(what);
      lockflight::profile tuned = capi::profile_of_first(place->port().rank(), what);
      out = capi::joined(std::move(place), what.words_per_rank, std::move(tuned));
    } catch (const lockflight::mpi::unavailable& e) {
      throw capi::refusal(LOCKFLIGHT_UNAVAILABLE, e.what());
    }
    return LOCKFLIGHT_OK;
  });
}

int lockflight_join_mpi_f(int comm, lockflight_participant** me, const lockflight_config* config) {
  return lockflight_join_mpi_fint(comm, config, me);
}
