// Participants on a launch that is wired up without MPI.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "bindings/c/config.hpp"
#include "bindings/c/error.hpp"
#include "bindings/c/joined.hpp"
#include "bindings/c/tuned.hpp"
#include "lockflight/fabric/wired.hpp"

namespace lockflight::capi {

template <class Environment>
struct wired_place final : place {
  Environment launch;
  wired::membership members;
  explicit wired_place(const lockflight_config& what) : members(launch, config_of(what)) {
    is_there = true;
  }
  ~wired_place() override { is_there = false; }
  [[nodiscard]] fabric::networked_port& port() override { return members.access(); }

  static inline bool is_there = false;  ///< a process is one rank of one launch

 private:
  [[nodiscard]] wired::config config_of(const lockflight_config& what) {
    return {
        .machine = levels_or(what, wired::discover(launch, launch.size()).machine, "the launch"),
        .waiting = waiting_of(what),
        .words_per_rank = words_of(what)};
  }
};

/// The body of lockflight_join_ucx and lockflight_join_libfabric.
template <class Environment>
int join_wired(const lockflight_config* config, lockflight_participant** me) {
  return guarded([&] {
    auto& out = need(me, "me", "where to put the participant");
    const lockflight_config what = or_defaults(config);
    refuse_members_of_runs(what);
    if (wired_place<Environment>::is_there)
      throw std::invalid_argument(std::string("a second participant on ") + Environment::fabric +
                                  " (accepted: one for each process at a time; lockflight_leave "
                                  "ends it)");
    auto place = std::make_unique<wired_place<Environment>>(what);
    lockflight::profile tuned = agreed_profile(place->launch);
    out = joined(std::move(place), words_of(what), std::move(tuned));
    return LOCKFLIGHT_OK;
  });
}

}  // namespace lockflight::capi
