// Searches a program's schedules for one that breaks a rule.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lab/check/engine/engine.hpp"

namespace lockflight::check {

enum class verdict { ok, violation, bound };

/// The limits of a search, and its options.
struct limits {
  double seconds = 0;             ///< 0: no limit
  std::uint64_t most_states = 0;  ///< 0: as memory allows
  bool re_execute = false;        ///< go back by running again instead of by copying stacks
  bool shorten = true;            ///< look for a shorter counterexample when one was found
};

/// For searches that do not try everything: probabilistic concurrency testing.
struct random_limits {
  std::uint64_t seed = 1;
  std::uint64_t executions = 0;  ///< 0: until the time is over
  double seconds = 10;
  int depth =
      3;  ///< d: a bug that needs d ordered events is found with probability >= 1/(n k^(d-1))
};

struct outcome {
  verdict what = verdict::ok;
  std::uint64_t states = 0;  ///< different ones
  std::uint64_t transitions = 0;
  std::uint64_t executions = 0;  ///< executions that came to an end
  std::uint64_t cut = 0;         ///< executions that ended because retries were used up
  double seconds = 0;
  std::optional<violation> broken;
  std::vector<step> schedule;  ///< the schedule that breaks the property
  std::size_t repeats = 0;     ///< the last steps of it, which can go on for ever (starvation.hpp)
};

/// Called now and then with the outcome so far; returning false stops the search.
using search_progress = std::function<bool(const outcome&)>;

/// Every schedule, up to states already seen. `ok` only when nothing was left out.
[[nodiscard]] outcome search_all(engine& e, const limits& until,
                                 const search_progress& watch = nullptr);

/// Randomised priority schedules (Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized
/// Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010). Never `ok`: the answer
/// is a violation or `bound`. The same seed gives the same executions.
[[nodiscard]] outcome search_random(engine& e, const random_limits& until,
                                    const search_progress& watch = nullptr);

}  // namespace lockflight::check
