#include "capi/joined.hpp"

#include "capi/participant.hpp"

namespace lockflight::capi {
namespace {

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

}  // namespace

rma::topology machine_of_joined(rma::topology found, const lockflight_config& what,
                                const std::string& whose_ranks) {
  refuse_members_of_runs(what);
  auto given = levels_of(what);
  if (!given) return found;
  if (given->ranks() != found.ranks())
    throw std::invalid_argument(
        "levels '" + std::string(what.levels) + "' (accepted: levels that multiply to " +
        std::to_string(found.ranks()) + ", the ranks of " + whose_ranks + ")");
  return *std::move(given);
}

}  // namespace lockflight::capi

int lockflight_leave(lockflight_participant* me) {
  namespace capi = lockflight::capi;
  return capi::guarded([&] {
    const auto& it = capi::need(me, "me", "a participant that has joined");
    if (!it.leaves())
      throw std::invalid_argument(
          "me, a rank of lockflight_run (accepted: a participant that has joined; a rank "
          "of a run ends when its body returns)");
    if (const capi::handle* const held = it.held())
      throw capi::refusal(LOCKFLIGHT_HELD,
                          "leave while this participant holds a lock, " + held->name);
    delete me;
    return LOCKFLIGHT_OK;
  });
}
