// Participants on OpenSHMEM.
#include "lockflight/fabric/oshmem.hpp"
#include "bindings/c/config.hpp"
#include "bindings/c/error.hpp"
#include "bindings/c/joined.hpp"
#include "bindings/c/tuned.hpp"

namespace lockflight::capi {
namespace {

[[nodiscard]] oshmem::config config_of(oshmem::environment& launch, const lockflight_config& what) {
  rma::topology machine =
      levels_or(what, oshmem::discover(launch, launch.size()).machine, "the launch");
  return {
      .machine = std::move(machine), .waiting = waiting_of(what), .words_per_rank = words_of(what)};
}

struct oshmem_place final : place {
  oshmem::environment launch{oshmem::started_by::program};
  oshmem::membership members;
  explicit oshmem_place(const lockflight_config& what) : members(launch, config_of(launch, what)) {}
  [[nodiscard]] fabric::networked_port& port() override { return members.access(); }
};

}  // namespace
}  // namespace lockflight::capi

int lockflight_join_oshmem(const lockflight_config* config, lockflight_participant** me) {
  namespace capi = lockflight::capi;
  return capi::guarded([&] {
    auto& out = capi::need(me, "me", "where to put the participant");
    const lockflight_config what = capi::or_defaults(config);
    capi::refuse_members_of_runs(what);
    try {
      auto place = std::make_unique<capi::oshmem_place>(what);
      lockflight::profile tuned = capi::agreed_profile(place->launch);
      out = capi::joined(std::move(place), capi::words_of(what), std::move(tuned));
    } catch (const lockflight::oshmem::unavailable& e) {
      throw capi::refusal(LOCKFLIGHT_UNAVAILABLE, e.what());
    }
    return LOCKFLIGHT_OK;
  });
}

int lockflight_join_shmem(lockflight_participant** me, const lockflight_config* config) {
  return lockflight_join_oshmem(config, me);
}
