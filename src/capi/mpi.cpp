// Participants on MPI. Compiled once, linked with the fabric of each MPI.
#include "lockflight/fabric/mpi.hpp"
#include "capi/config.hpp"
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

void refuse_members_of_runs(const lockflight_config& what) {
  const auto refuse = [](const char* member, int value) {
    if (value != 0)
      throw std::invalid_argument(std::string(member) + " " + std::to_string(value) +
                                  " (accepted: 0; it is lockflight_run's)");
  };
  refuse("ranks", what.ranks);
  refuse("threads", what.threads);
  refuse("unpinned", what.unpinned);
}

[[nodiscard]] mpi::config config_of(int comm, const lockflight_config& what) {
  refuse_members_of_runs(what);
  rma::topology machine = mpi::nodes_of(comm);
  if (auto given = levels_of(what)) {
    if (given->ranks() != machine.ranks())
      throw std::invalid_argument(
          "levels '" + std::string(what.levels) + "' (accepted: levels that multiply to " +
          std::to_string(machine.ranks()) + ", the ranks of the communicator)");
    machine = *std::move(given);
  }
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

int lockflight_leave(lockflight_participant* me) {
  namespace capi = lockflight::capi;
  return capi::guarded([&] {
    const auto& it = capi::need(me, "me", "a participant, from lockflight_join_mpi");
    if (!it.leaves())
      throw std::invalid_argument(
          "me, a rank of lockflight_run (accepted: a participant from lockflight_join_mpi; a rank "
          "of a run ends when its body returns)");
    if (const capi::handle* const held = it.held())
      throw capi::refusal(LOCKFLIGHT_HELD,
                          "leave while this participant holds a lock, " + held->name);
    delete me;
    return LOCKFLIGHT_OK;
  });
}
