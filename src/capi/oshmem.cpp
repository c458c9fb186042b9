// Participants on OpenSHMEM.
#include "lockflight/fabric/oshmem.hpp"
#include "capi/config.hpp"
#include "capi/participant.hpp"
#include "capi/tuned.hpp"

namespace lockflight::capi {
namespace {

[[nodiscard]] oshmem::config config_of(oshmem::environment& launch, const lockflight_config& what) {
  rma::topology machine =
      levels_or(what, oshmem::discover(launch, launch.size()).machine, "the launch");
  return {
      .machine = std::move(machine), .waiting = waiting_of(what), .words_per_rank = words_of(what)};
}

/// The membership that the participant uses: a base class, so that it is constructed before it and
/// destroyed after it.
struct place {
  oshmem::environment launch{oshmem::started_by::program};
  oshmem::membership members;
  explicit place(const lockflight_config& what) : members(launch, config_of(launch, what)) {}

  /// The first rank's profile, on all ranks: some parameters say where a lock's words lie.
  [[nodiscard]] profile agreed_profile() {
    const std::string mine = launch.rank() == 0 ? profile_or_warning().text() : "";
    return profile::parse(launch.gather(mine).front(), "LOCKFLIGHT_PROFILE");
  }
};

class joined final : place, public participant_on<oshmem::port> {
 public:
  explicit joined(const lockflight_config& what)
      : place(what), participant_on(members.access(), words_of(what), agreed_profile()) {}

  [[nodiscard]] bool leaves() const override { return true; }
};

}  // namespace
}  // namespace lockflight::capi

int lockflight_join_shmem(lockflight_participant** me, const lockflight_config* config) {
  namespace capi = lockflight::capi;
  return capi::guarded([&] {
    auto& out = capi::need(me, "me", "where to put the participant");
    const lockflight_config what = capi::or_defaults(config);
    capi::refuse_members_of_runs(what);
    try {
      out = new capi::joined(what);
    } catch (const lockflight::oshmem::unavailable& e) {
      throw capi::refusal(LOCKFLIGHT_UNAVAILABLE, e.what());
    }
    return LOCKFLIGHT_OK;
  });
}
