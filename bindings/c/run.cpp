// Participants on shared memory.
#include "bindings/c/config.hpp"
#include "bindings/c/participant.hpp"
#include "bindings/c/tuned.hpp"
#include "lockflight/fabric/shm.hpp"

namespace lockflight::capi {
namespace {

/// Checks the number of ranks before memory is taken for them.
void check_ranks(int ranks) {
  if (ranks < 1 || ranks > shm::most_ranks)
    throw std::invalid_argument("ranks " + std::to_string(ranks) + " (accepted: 1 to " +
                                std::to_string(shm::most_ranks) + ", and 0 for the default)");
}

[[nodiscard]] rma::topology machine_of(const lockflight_config& what) {
  if (what.ranks != 0) check_ranks(what.ranks);
  if (auto given = levels_of(what)) {
    check_ranks(given->ranks());
    if (what.ranks != 0 && what.ranks != given->ranks())
      throw std::invalid_argument("levels '" + std::string(what.levels) +
                                  "' (accepted: levels that multiply to ranks, " +
                                  std::to_string(what.ranks) + ")");
    return *std::move(given);
  }
  return rma::topology::flat(what.ranks != 0 ? what.ranks : shm::discover(1).processors);
}

[[nodiscard]] shm::config config_of(const lockflight_config& what) {
  return {.machine = machine_of(what),
          .threads = what.threads != 0,
          .pin = what.unpinned == 0,
          .waiting = waiting_of(what),
          .words_per_rank = words_of(what)};
}

/// Runs one rank. The text of an exception is what lockflight_run reports.
void run_rank(shm::port& port, std::uint32_t words, const profile& tuned, lockflight_body* body,
              void* argument) {
  participant_on<shm::port> me(port, words, tuned);
  lockflight_detail_fail(LOCKFLIGHT_OK, "");  // a forked rank would have its parent's last error
  const int code = body(&me, argument);
  if (code != LOCKFLIGHT_OK) {
    const std::string why = lockflight_last_error();
    throw std::runtime_error("its body returned " + std::to_string(code) +
                             (why.empty() ? "" : ", after " + why));
  }
  if (const handle* const held = me.held())
    throw std::runtime_error("its body returned while it held a lock, " + held->name);
}

}  // namespace
}  // namespace lockflight::capi

int lockflight_run(const lockflight_config* config, lockflight_body* body, void* argument) {
  namespace capi = lockflight::capi;
  return capi::guarded([&] {
    capi::need(body, "body", "a function that each rank runs");
    const lockflight::shm::config what = capi::config_of(capi::or_defaults(config));
    // The profile is read before the ranks start, so that all ranks have the same one.
    const lockflight::profile tuned = capi::profile_or_warning();
    lockflight::shm::run_ports(what, [&](lockflight::shm::port& port) {
      capi::run_rank(port, what.words_per_rank, tuned, body, argument);
    });
    return LOCKFLIGHT_OK;
  });
}
