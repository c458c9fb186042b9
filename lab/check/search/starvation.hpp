// Searches for an endless fair schedule in which a participant's round never ends: it waits for
// ever although every participant that can goes on.
//
// The program is endless (model::endless): each participant comes without end, and may stop after
// any round, so that all numbers of rounds are covered at once. Its states are finitely many, and
// an endless schedule is a path through them that ends in a cycle. It is (weakly) fair if every
// duty (engine::duty) that stays possible in all of the cycle happens in it. A step that is
// possible only now and then need not happen: a poller may read at the wrong moment each time.
//
// With deaths, participants may have died before a cycle. A dead participant is in no round and has
// no step of its own any more, so there is no duty to it; that its death becomes known is a duty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lab/check/search/search.hpp"

namespace lockflight::check {

/// The participants whose rounds must end.
struct starvation {
  std::uint32_t ranks;        ///< a bit for each watched rank
  bool leaving_only = false;  ///< from the release on; how long they waited before does not matter
};

/// Searches every schedule of an endless program for a broken rule and for starvation of a watched
/// rank. `ok` only when nothing was left out.
[[nodiscard]] outcome search_starvation(engine& e, const starvation& watched, const limits& until,
                                        const search_progress& watch = nullptr);

/// The violation if the last `repeats` steps of `schedule` repeat for ever; nothing if they cannot,
/// if that is not fair, or if no watched rank is in one round all along. Leaves `e` at the end.
[[nodiscard]] std::optional<violation> judge_repetition(engine& e,
                                                        const std::vector<step>& schedule,
                                                        std::size_t repeats,
                                                        const starvation& watched);

}  // namespace lockflight::check
