#include <algorithm>
#include <array>
#include <chrono>
#include <random>

#include "lab/check/search/fair.hpp"
#include "lab/check/search/search.hpp"

namespace lockflight::check {
namespace {

// Each participant counts seven times in the order of priorities: it, its operations under way, its
// buffered stores, its clocks, its death and its stop, so that any of them can lag behind the
// others.
constexpr std::size_t agents_each = 7;
constexpr std::size_t most_agents = most_fibers * agents_each;

[[nodiscard]] std::size_t agent_of(step s) {
  return s.fiber * agents_each + static_cast<std::size_t>(s.what);
}

class priorities {
 public:
  priorities(std::mt19937_64& random, int depth, std::uint64_t steps) : random_(random) {
    for (std::size_t i = 0; i < most_agents; ++i) rank_[i] = most_agents + i;
    std::shuffle(rank_.begin(), rank_.end(), random);
    for (int i = 1; i < depth; ++i)
      change_at_.push_back(random() % std::max<std::uint64_t>(steps, 1));
  }

  [[nodiscard]] step choose(const std::vector<step>& steps) {
    step best = steps.front();
    std::size_t alike = 0;  // operations of one participant are drawn from evenly
    for (const step s : steps) {
      if (agent_of(s) == agent_of(best)) {
        if (random_() % ++alike == 0) best = s;
      } else if (rank_[agent_of(s)] > rank_[agent_of(best)]) {
        best = s;
        alike = 1;
      }
    }
    const auto changes = std::count(change_at_.begin(), change_at_.end(), taken_++);
    if (changes > 0) rank_[agent_of(best)] = --lowest_;
    return best;
  }

 private:
  std::mt19937_64& random_;
  std::array<std::size_t, most_agents> rank_{};
  std::vector<std::uint64_t> change_at_;
  std::uint64_t taken_ = 0;
  std::size_t lowest_ = most_agents;
};

}  // namespace

outcome search_random(engine& e, const random_limits& until, const search_progress& watch) {
  using clock = std::chrono::steady_clock;
  const auto began = clock::now();
  std::mt19937_64 random(until.seed);
  outcome found;
  found.what = verdict::bound;
  std::vector<step> steps;
  std::uint64_t longest = 50;  // k: an estimate that the executions correct
  for (std::uint64_t n = 0; until.executions == 0 || n < until.executions; ++n) {
    e.start();
    found.schedule.clear();
    priorities order(random, until.depth, longest);
    while (!found.broken) {
      steps.clear();
      e.enabled(steps);
      if (e.only_unflushed(steps)) {
        found.broken = judge_end(e);
        break;
      }
      const step s = order.choose(steps);
      e.take(s);
      found.schedule.push_back(s);
      ++found.transitions;
      found.broken = e.broken();
    }
    ++found.executions;
    if (e.somebody_gave_up()) ++found.cut;
    longest = std::max<std::uint64_t>(longest, found.schedule.size());
    if (found.broken) {
      found.what = verdict::violation;
      break;
    }
    if (n % 256 == 255) {
      found.seconds = std::chrono::duration<double>(clock::now() - began).count();
      if ((until.executions == 0 && found.seconds > until.seconds) || (watch && !watch(found)))
        break;
    }
  }
  found.seconds = std::chrono::duration<double>(clock::now() - began).count();
  if (found.what != verdict::violation) found.schedule.clear();
  return found;
}

}  // namespace lockflight::check
