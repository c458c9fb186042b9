#include "lab/check/search/fair.hpp"

#include <climits>

namespace lockflight::check {

std::optional<violation> find_livelock(engine& e) {
  if (!engine::can_copy_stacks()) return std::nullopt;
  constexpr int most_turns = 2'000;
  static engine::saved before;
  e.save(before);
  const int limit = e.retry_limit();
  e.set_retry_limit(INT_MAX);
  const std::uint64_t progress = e.progress();
  std::optional<violation> found;
  std::vector<step> steps;
  std::uint8_t turn = 0;
  for (int i = 0; e.progress() == progress; ++i) {
    steps.clear();
    e.enabled(steps);
    if (e.only_unflushed(steps)) {
      if (!e.all_are_excused()) found = e.describe_deadlock();
      break;
    }
    if (i == most_turns) {
      found = violation{"livelock", "all retry for ever, round robin, and none enters"};
      break;
    }
    std::erase_if(steps, [&e](step s) { return e.only_unflushed({&s, 1}); });
    // The next fiber, round robin, that has a step; its operations take effect before it goes on.
    step chosen = steps.front();
    for (const step s : steps)
      if (s.fiber >= turn) {
        chosen = s;
        break;
      }
    for (const step s : steps)
      if (s.fiber == chosen.fiber && s.what != step::kind::run) chosen = s;
    turn = static_cast<std::uint8_t>(chosen.fiber + 1);
    e.take(chosen);
    if (e.broken()) break;  // found by the search itself on another path
  }
  e.restore(before);
  e.set_retry_limit(limit);
  return found;
}

std::optional<violation> judge_end(engine& e) {
  if (e.broken() || e.all_finished())
    return e.broken();  // broken before the first step of any participant
  if (e.all_are_excused()) return std::nullopt;
  return e.somebody_gave_up() ? find_livelock(e) : e.describe_deadlock();
}

}  // namespace lockflight::check
