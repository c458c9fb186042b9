#include "lab/check/search/search.hpp"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "lab/check/search/fair.hpp"
#include "lab/check/search/visited.hpp"

namespace lockflight::check {
namespace {

using clock = std::chrono::steady_clock;

[[nodiscard]] double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

/// Counts a state without a future. Sets `found.broken` if it is a violation.
void count_end(engine& e, outcome& found) {
  if (e.all_finished())
    ++found.executions;
  else if (e.somebody_gave_up())
    ++found.cut;
  found.broken = judge_end(e);
}

/// Depth-first search over states that are returned to by undoing steps.
class depth_first {
 public:
  depth_first(engine& e, const limits& until, const search_progress& watch)
      : engine_(e), until_(until), watch_(watch), began_(clock::now()) {}

  /// Searches to at most `most_depth` steps. True if it came to an end: a violation, or everything.
  bool run(outcome& found, std::size_t most_depth) {
    found.states = 0;
    seen_.clear();
    depth_of_.clear();
    while (!run_once(found, most_depth)) {
      if (stopped_) return false;
      seen_.clear();  // states have more parts now
      depth_of_.clear();
      found = {};
    }
    found.seconds = seconds_since(began_);
    return !stopped_;
  }

  [[nodiscard]] bool left_out() const { return left_out_; }

 private:
  struct frame {
    std::size_t next;   // in choices_
    std::size_t first;  // in choices_; the end is the next frame's first
    engine::undo undo;  // of the step that led here
  };

  // False if it must start over or was stopped.
  bool run_once(outcome& found, std::size_t most_depth) {
    engine_.drop_unread();
    engine_.start();
    images_.clear();
    choices_.clear();
    frames_.clear();
    left_out_ = false;
    const unsigned learned = engine_.learned();
    std::uint64_t starts_over_at = 0;
    is_new(engine_.key(), 0, most_depth);
    if (!push({}, found)) return finish(found);
    while (!frames_.empty()) {
      frame& top = frames_.back();
      if (top.next == choices_.size()) {
        pop();
        continue;
      }
      const step s = choices_[top.next++];
      take(s);
      if ((++found.transitions & 0x3fff) == 0 && out_of_time(found)) return false;
      if (engine_.broken()) {
        if (engine_.learned() != learned) return false;  // the search finds it again
        found.broken = engine_.broken();
        make_schedule(found);
        return finish(found);
      }
      // A use that was learned late is hardly the last: the search first learns more for as long
      // again.
      if (engine_.learned() != learned) {
        if (until_.re_execute) return false;  // steps are not the same any more
        if (starts_over_at == 0) starts_over_at = 2 * found.transitions + 1'000;
        if (found.transitions >= starts_over_at) return false;
      }
      const std::size_t depth = frames_.size();
      if (!is_new(engine_.key(), depth, most_depth)) {
        go_back(pending_);
        continue;
      }
      if (!push(s, found)) {
        if (engine_.learned() != learned) return false;
        make_schedule(found);
        return finish(found);
      }
    }
    return engine_.learned() == learned && finish(found);
  }

  bool finish(outcome& found) {
    found.states = seen_.size() + depth_of_.size();
    found.what = found.broken ? verdict::violation : verdict::ok;
    return true;
  }

  // A state is explored again when it is reached with fewer steps and depth is limited.
  bool is_new(std::uint64_t key, std::size_t depth, std::size_t most_depth) {
    if (most_depth == SIZE_MAX) return seen_.insert(key);
    if (depth > most_depth) {
      left_out_ = true;
      return false;
    }
    const auto [at, inserted] = depth_of_.try_emplace(key, depth);
    if (!inserted && at->second <= depth) return false;
    at->second = depth;
    return true;
  }

  // The state that was just reached. False if it is a violation.
  bool push(step, outcome& found) {
    const std::size_t first = choices_.size();
    engine_.enabled(choices_);
    const std::span<const step> here(choices_.begin() + static_cast<std::ptrdiff_t>(first),
                                     choices_.end());
    if (engine_.only_unflushed(here)) {
      count_end(engine_, found);
      if (found.broken) return false;
    }
    frames_.push_back({first, first, pending_});
    return true;
  }

  void pop() {
    choices_.resize(frames_.back().first);
    const engine::undo undo = frames_.back().undo;
    frames_.pop_back();
    if (!frames_.empty()) go_back(undo);
  }

  void take(step s) {
    path_.resize(frames_.size() - 1);
    path_.push_back(s);
    if (until_.re_execute) {
      pending_.what = s;
      engine_.take(s);
    } else {
      engine_.take(s, pending_, images_);
    }
  }

  // Undoes the last step: of the state on top of the frames, or of one that was not pushed.
  void go_back(const engine::undo& undo) {
    if (!until_.re_execute) return engine_.take_back(undo, images_);
    engine_.start();
    path_.resize(frames_.size() - 1);
    for (const step s : path_) engine_.take(s);
  }

  // The way to this state, with each fence as a step of its own, so that it can be repeated by an
  // engine that has learned nothing.
  void make_schedule(outcome& found) {
    found.schedule.clear();
    engine_.start();
    for (const step s : path_) {
      engine_.take(s);
      found.schedule.push_back(s);
      found.schedule.insert(found.schedule.end(),
                            static_cast<std::size_t>(engine_.fences_at_once()),
                            {step::kind::run, s.fiber});
    }
  }

  bool out_of_time(outcome& found) {
    found.states = seen_.size() + depth_of_.size();
    found.seconds = seconds_since(began_);
    stopped_ = (until_.seconds > 0 && found.seconds > until_.seconds) ||
               (until_.most_states > 0 && found.states > until_.most_states) ||
               (watch_ && !watch_(found));
    if (stopped_) found.what = verdict::bound;
    return stopped_;
  }

  engine& engine_;
  const limits& until_;
  const search_progress& watch_;
  clock::time_point began_;
  visited seen_;
  std::unordered_map<std::uint64_t, std::size_t> depth_of_;  // only when depth is limited
  std::vector<frame> frames_;
  std::vector<step> choices_;
  std::vector<step> path_;
  std::vector<std::byte> images_;
  engine::undo pending_;
  bool stopped_ = false;
  bool left_out_ = false;
};

/// Bisects the depth at which the same property is broken, for a few seconds.
void shorten(engine& e, const limits& until, outcome& found) {
  constexpr double most_seconds = 5;
  const auto began = clock::now();
  std::size_t too_short = 0;
  while (too_short + 1 < found.schedule.size()) {
    const double left = most_seconds - seconds_since(began);
    if (left <= 0) return;
    limits inner = until;
    inner.seconds = left;
    const std::size_t depth = (too_short + found.schedule.size()) / 2;
    outcome shorter;
    const search_progress nobody;
    depth_first search(e, inner, nobody);
    if (!search.run(shorter, depth)) return;
    const bool is_shorter = shorter.broken && shorter.broken->property == found.broken->property &&
                            shorter.schedule.size() < found.schedule.size();
    if (is_shorter) {
      found.schedule = shorter.schedule;
      found.broken = shorter.broken;
    } else {
      too_short = depth;
    }
  }
}

}  // namespace

outcome search_all(engine& e, const limits& until, const search_progress& watch) {
  limits how = until;
  how.re_execute = until.re_execute || !engine::can_copy_stacks();
  outcome found;
  depth_first search(e, how, watch);
  search.run(found, SIZE_MAX);
  if (found.what == verdict::violation && until.shorten) shorten(e, how, found);
  return found;
}

}  // namespace lockflight::check
