// Participants on UCX.
#include "lockflight/fabric/ucx.hpp"

#include "capi/config.hpp"
#include "capi/participant.hpp"
#include "capi/tuned.hpp"

namespace lockflight::capi {
namespace {

[[nodiscard]] ucx::config config_of(ucx::environment& in, const lockflight_config& what) {
  rma::topology machine = levels_or(what, ucx::discover(in, in.size()).machine, "the launch");
  return {
      .machine = std::move(machine), .waiting = waiting_of(what), .words_per_rank = words_of(what)};
}

/// The first rank's profile, on all ranks: some parameters say where a lock's words lie.
[[nodiscard]] profile agreed_profile(ucx::environment& in) {
  const std::string mine = in.rank() == 0 ? profile_or_warning().text() : "";
  return profile::parse(in.gather(mine).front(), "LOCKFLIGHT_PROFILE");
}

/// The launch and the membership that the participant uses: a base class, so that they are
/// constructed before it and destroyed after it.
struct place {
  ucx::environment launch;
  ucx::membership members;
  explicit place(const lockflight_config& what) : members(launch, config_of(launch, what)) {}
};

class joined final : place, public participant_on<ucx::port> {
 public:
  explicit joined(const lockflight_config& what)
      : place(what), participant_on(members.access(), words_of(what), agreed_profile(launch)) {
    is_there = true;
  }
  ~joined() override { is_there = false; }
  joined(const joined&) = delete;
  joined& operator=(const joined&) = delete;

  [[nodiscard]] bool leaves() const override { return true; }

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
    if (capi::joined::is_there)
      throw std::invalid_argument(
          "a second participant on UCX (accepted: one for each process at a time; "
          "lockflight_leave ends it)");
    out = new capi::joined(what);
    return LOCKFLIGHT_OK;
  });
}
