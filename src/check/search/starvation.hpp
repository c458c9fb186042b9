// Searches for a fair schedule without an end in which somebody's round never ends: it waits for
// ever although everybody goes on who can.
//
// The program is endless (model::endless): each participant comes as often as it likes, and may
// stop after any round, so that all numbers of rounds are covered at once. Its states are finitely
// many, and a schedule without an end is a way through them that ends in a cycle. It is fair
// (weakly) if whatever stays possible in all of the cycle (engine::duty) happens in it. What is
// possible only now and then need not happen: who polls may look at the wrong moment each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "check/search/search.hpp"

namespace lockflight::check {

/// Whose rounds must end.
struct starvation {
  std::uint32_t ranks;        ///< a bit for each that is watched
  bool leaving_only = false;  ///< from the release on; how long they waited before does not matter
};

/// Every schedule of an endless program: breaks it a rule, or is one of `watched` starved? `ok`
/// only when nothing was left out.
[[nodiscard]] outcome search_starvation(engine& e, const starvation& watched, const limits& until,
                                        const search_progress& watch = nullptr);

/// What it means that the last `repeats` steps of `schedule` go on for ever; nothing if they
/// cannot, if that is not fair, or if none of `watched` is in one round all along. Leaves `e` at
/// the end.
[[nodiscard]] std::optional<violation> judge_repetition(engine& e,
                                                        const std::vector<step>& schedule,
                                                        std::size_t repeats,
                                                        const starvation& watched);

}  // namespace lockflight::check
