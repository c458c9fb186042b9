// Participants on MPI. Compiled once, linked with the fabric of each MPI.
#include "lockflight/fabric/mpi.hpp"
#include "capi/joined.hpp"
#include "capi/participant.hpp"
#include "capi/tuned.hpp"

namespace lockflight::capi {
namespace {

/// The membership that the participant uses: a base class, so that it is constructed before it and
/// destroyed after it.
struct place {
  mpi::membership members;
  explicit place(const mpi::config& what) : members(what) {}
};

/// The first rank's profile, on all ranks: some parameters say where a lock's words lie.
[[nodiscard]] profile agreed_profile(mpi::membership& members, const mpi::config& what) {
  const bool first = members.access().rank() == 0;
  const std::string mine = first ? profile_or_warning().text() : "";
  return profile::parse(mpi::first_rank_says(mine, *what.communicator), "LOCKFLIGHT_PROFILE");
}

class joined final : place, public participant_on<mpi::port> {
 public:
  explicit joined(const mpi::config& what)
      : place(what),
        participant_on(members.access(), what.words_per_rank, agreed_profile(members, what)) {}

  [[nodiscard]] bool leaves() const override { return true; }
};

[[nodiscard]] mpi::config config_of(int comm, const lockflight_config& what) {
  rma::topology machine = machine_of_joined(mpi::nodes_of(comm), what, "the communicator");
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

int lockflight_join_mpi_f(int comm, lockflight_participant** me, const lockflight_config* config) {
  namespace capi = lockflight::capi;
  return capi::guarded([&] {
    auto& out = capi::need(me, "me", "where to put the participant");
    try {
      out = new capi::joined(capi::config_of(comm, capi::or_defaults(config)));
    } catch (const lockflight::mpi::unavailable& e) {
      throw capi::refusal(LOCKFLIGHT_UNAVAILABLE, e.what());
    }
    return LOCKFLIGHT_OK;
  });
}
