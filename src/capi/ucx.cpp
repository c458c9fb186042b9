// Participants on UCX.
#include "lockflight/fabric/ucx.hpp"

#include "capi/config.hpp"
#include "capi/error.hpp"
#include "capi/joined.hpp"
#include "capi/tuned.hpp"

namespace lockflight::capi {
namespace {

[[nodiscard]] ucx::config config_of(ucx::environment& in, const lockflight_config& what) {
  rma::topology machine = levels_or(what, ucx::discover(in, in.size()).machine, "the launch");
  return {
      .machine = std::move(machine), .waiting = waiting_of(what), .words_per_rank = words_of(what)};
}

struct ucx_place final : place {
  ucx::environment launch;
  ucx::membership members;
  explicit ucx_place(const lockflight_config& what) : members(launch, config_of(launch, what)) {
    is_there = true;
  }
  ~ucx_place() override { is_there = false; }
  [[nodiscard]] fabric::networked_port& port() override { return members.access(); }

  static inline bool is_there = false;  ///< a process is one rank of one launch
};

}  // namespace
}  // namespace lockflight::capi

int lockflight_join_ucx(const lockflight_config* config, lockflight_participant** me) {
  namespace capi = lockflight::capi;
  return capi::guarded([&] {
    auto& out = capi::need(me, "me", "where to put the participant");
    const lockflight_config what = capi::or_defaults(config);
    capi::refuse_members_of_runs(what);
    if (capi::ucx_place::is_there)
      throw std::invalid_argument(
          "a second participant on UCX (accepted: one for each process at a time; "
          "lockflight_leave ends it)");
    auto place = std::make_unique<capi::ucx_place>(what);
    lockflight::profile tuned = capi::agreed_profile(place->launch);
    out = capi::joined(std::move(place), capi::words_of(what), std::move(tuned));
    return LOCKFLIGHT_OK;
  });
}
