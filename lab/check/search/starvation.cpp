#include "lab/check/search/starvation.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>

#include "lab/check/search/state_graph.hpp"

namespace lockflight::check {
namespace {

using clock = std::chrono::steady_clock;
using number = state_graph::number;

constexpr number nobody = std::numeric_limits<number>::max();

/// The numbers of the states seen so far, by key: open addressing, at most three quarters full.
class numbers {
 public:
  /// The number of `key`; `next` from now on if it has none.
  number find_or_add(std::uint64_t key, number next) {
    if (4 * (size_ + 1) > 3 * slots_.size()) grow();
    slot& at = place(key);
    if (at.key == 0) {
      at = {key, next};
      ++size_;
    }
    return at.of;
  }

 private:
  struct slot {
    std::uint64_t key = 0;  // of no state
    number of = 0;
  };

  slot& place(std::uint64_t key) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = key & mask;
    while (slots_[i].key != key && slots_[i].key != 0) i = (i + 1) & mask;
    return slots_[i];
  }
  void grow() {
    std::vector<slot> before(2 * slots_.size());
    before.swap(slots_);
    for (const slot& s : before)
      if (s.key != 0) place(s.key) = s;
  }

  std::vector<slot> slots_ = std::vector<slot>(std::size_t{1} << 16);
  std::size_t size_ = 0;
};

/// Goes to every state, depth first, and draws the graph.
class explorer {
 public:
  explorer(engine& e, const limits& until, const search_progress& watch)
      : engine_(e), until_(until), watch_(watch) {}

  /// False if a rule is broken on the way, or when it was stopped: then `found` says so.
  [[nodiscard]] bool draw(state_graph& graph, outcome& found) {
    const auto began = clock::now();
    const auto look = [&] {
      found.states = graph.size();
      found.seconds = std::chrono::duration<double>(clock::now() - began).count();
    };
    engine_.start();
    known_.find_or_add(engine_.key(), 0);
    bool goes_on = reach(graph, found);
    while (goes_on && !frames_.empty()) {
      frame& top = frames_.back();
      if (top.next == graph.last(top.state)) {
        go_back();
        continue;
      }
      const std::size_t edge = top.next++;
      engine_.take(graph.at(edge).what, pending_, images_);
      ++found.transitions;
      path_.push_back(graph.at(edge).what);
      if (engine_.broken()) {
        found.broken = engine_.broken();
        break;
      }
      const auto fresh = static_cast<number>(graph.size());
      const number to = known_.find_or_add(engine_.key(), fresh);
      graph.lead(edge, to);
      if (to == fresh) {
        goes_on = reach(graph, found);
      } else {
        engine_.take_back(pending_, images_);
        path_.pop_back();
      }
      if ((found.transitions & 0x3fff) == 0) {
        look();
        if (is_over(found)) {
          found.what = verdict::bound;
          return false;
        }
      }
    }
    look();
    if (!found.broken) return true;
    found.what = verdict::violation;
    found.schedule = path_;
    return false;
  }

 private:
  struct frame {
    number state;
    std::size_t next;   // edge
    engine::undo undo;  // of the step that led here
  };

  // The state that was just reached for the first time. False if no participant can go on in it.
  bool reach(state_graph& graph, outcome& found) {
    const number state = graph.add(engine_);
    frames_.push_back({state, graph.first(state), pending_});
    const state_graph::facts& here = graph.of(state);
    if (here.in_round != 0 && here.duties == 0) found.broken = engine_.describe_deadlock();
    return !found.broken;
  }

  void go_back() {
    const engine::undo undo = frames_.back().undo;
    frames_.pop_back();
    if (frames_.empty()) return;
    engine_.take_back(undo, images_);
    path_.pop_back();
  }

  [[nodiscard]] bool is_over(const outcome& found) const {
    return (until_.seconds > 0 && found.seconds > until_.seconds) ||
           (until_.most_states > 0 && found.states > until_.most_states) ||
           (watch_ && !watch_(found));
  }

  engine& engine_;
  const limits& until_;
  const search_progress& watch_;
  numbers known_;
  std::vector<frame> frames_;
  std::vector<step> path_;
  std::vector<std::byte> images_;
  engine::undo pending_;
};

/// The strongly connected parts of the states in which one participant is in a round, or releases
/// (Tarjan 1972). In a fair part the round, or the release, need not end.
class unending {
 public:
  unending(const state_graph& graph, const starvation& who)
      : graph_(graph),
        who_(who),
        part_(graph.size(), nobody),
        entered_(graph.size(), 0),
        low_(graph.size(), 0) {
    for (number s = 0; s < graph_.size(); ++s)
      if (holds(s) && entered_[s] == 0) visit_from(s);
  }

  [[nodiscard]] bool any() const { return any_; }
  /// True if the state is in a fair part.
  [[nodiscard]] bool is_fair(number state) const { return part_[state] != nobody; }
  /// True if two states are in the same fair part.
  [[nodiscard]] bool together(number a, number b) const {
    return is_fair(a) && part_[a] == part_[b];
  }

 private:
  struct frame {
    number state;
    std::size_t next;  // edge
  };

  [[nodiscard]] bool holds(number s) const {
    const state_graph::facts& here = graph_.of(s);
    return ((who_.leaving_only ? here.leaving : here.in_round) & who_.ranks) != 0;
  }

  void open(number s) {
    entered_[s] = low_[s] = ++clock_;
    open_.push_back(s);
    frames_.push_back({s, graph_.first(s)});
  }

  void visit_from(number root) {
    open(root);
    while (!frames_.empty()) {
      frame& top = frames_.back();
      const number s = top.state;
      if (top.next < graph_.last(s)) {
        const number to = graph_.at(top.next++).to;
        if (!holds(to)) continue;
        if (entered_[to] == 0)
          open(to);
        else if (low_[to] != closed)
          low_[s] = std::min(low_[s], entered_[to]);
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) {
        number& above = low_[frames_.back().state];
        above = std::min(above, low_[s]);
      }
      if (low_[s] == entered_[s]) close(s);
    }
  }

  void close(number root) {
    const auto first = std::find(open_.rbegin(), open_.rend(), root).base() - 1;
    for (auto s = first; s != open_.end(); ++s) part_[*s] = root;
    std::uint64_t not_owed = 0;  // impossible in some state of it, or done on some way
    for (auto s = first; s != open_.end(); ++s) {
      not_owed |= ~graph_.of(*s).duties;
      for (std::size_t e = graph_.first(*s); e < graph_.last(*s); ++e)
        if (part_[graph_.at(e).to] == root) not_owed |= graph_.duty_at(e);
    }
    const bool fair = ~not_owed == 0;
    any_ = any_ || fair;
    for (auto s = first; s != open_.end(); ++s) {
      low_[*s] = closed;
      if (!fair) part_[*s] = nobody;
    }
    open_.erase(first, open_.end());
  }

  static constexpr number closed = nobody;

  const state_graph& graph_;
  starvation who_;            // one rank
  std::vector<number> part_;  // its root; nobody: none that is fair
  std::vector<number> entered_, low_;
  std::vector<number> open_;
  std::vector<frame> frames_;
  number clock_ = 0;
  bool any_ = false;
};

/// The shortest way from a state over `allowed` states to an edge that is a `goal`, as its edges.
template <class Allowed, class Goal>
[[nodiscard]] std::vector<std::size_t> way(const state_graph& graph, number from, Allowed allowed,
                                           Goal goal) {
  constexpr std::size_t not_reached = SIZE_MAX;
  std::vector<std::size_t> by(graph.size(), not_reached);  // the edge that led to it first
  std::vector<number> came_from(graph.size(), nobody);
  std::vector<number> queue{from};
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const number s = queue[head];
    for (std::size_t e = graph.first(s); e < graph.last(s); ++e) {
      const number to = graph.at(e).to;
      if (!allowed(to)) continue;
      if (goal(e)) {
        std::vector<std::size_t> edges{e};
        for (number at = s; at != from; at = came_from[at]) edges.push_back(by[at]);
        std::reverse(edges.begin(), edges.end());
        return edges;
      }
      if (to == from || by[to] != not_reached) continue;
      by[to] = e;
      came_from[to] = s;
      queue.push_back(to);
    }
  }
  return {};
}

/// Makes a schedule that leads into the nearest fair part and around in it, so that all duties are
/// done in the end.
void tell(const state_graph& graph, const unending& parts, outcome& found) {
  const auto append = [&](const std::vector<std::size_t>& edges) {
    for (const std::size_t e : edges) found.schedule.push_back(graph.at(e).what);
    return graph.at(edges.back()).to;
  };
  const auto anywhere = [](number) { return true; };
  const number entry =
      append(way(graph, 0, anywhere, [&](std::size_t e) { return parts.is_fair(graph.at(e).to); }));
  const std::size_t before = found.schedule.size();
  const auto inside = [&](number s) { return parts.together(s, entry); };
  const auto paid_by = [&](std::size_t e) {
    return graph.duty_at(e) | ~graph.of(graph.at(e).to).duties;
  };
  std::uint64_t owed = graph.of(entry).duties;
  number at = entry;
  while (owed != 0) {
    const auto edges =
        way(graph, at, inside, [&](std::size_t e) { return (paid_by(e) & owed) != 0; });
    at = append(edges);
    for (const std::size_t e : edges) owed &= ~paid_by(e);
  }
  if (at != entry)
    append(way(graph, at, inside, [&](std::size_t e) { return graph.at(e).to == entry; }));
  found.repeats = found.schedule.size() - before;
}

[[nodiscard]] std::string describe(const engine& e, std::uint32_t starved,
                                   const std::vector<int>& entries, std::size_t repeats) {
  std::string text;
  for (rank_t f = 0; f < e.machine().ranks(); ++f) {
    if ((starved & 1u << f) == 0) continue;
    text.append(text.empty() ? "rank " : " and rank ").append(std::to_string(f));
    text.append(e.where(f) == stage::releasing ? " never gets out" : " waits for ever");
  }
  text.append("; the last ").append(std::to_string(repeats)).append(" steps can go on and on");
  const char* before = ", in which rank ";
  for (rank_t f = 0; f < e.machine().ranks(); ++f) {
    const int times = entries[static_cast<std::size_t>(f)];
    if (times == 0) continue;
    text.append(before).append(std::to_string(f)).append(" enters");
    before = ", rank ";
    if (times > 1) text.append(" ").append(std::to_string(times)).append(" times");
  }
  return text;
}

[[nodiscard]] bool is_in(stage s) { return s == stage::inside || s == stage::inside_shared; }

}  // namespace

outcome search_starvation(engine& e, const starvation& watched, const limits& until,
                          const search_progress& watch) {
  outcome found;
  state_graph graph;
  if (!explorer(e, until, watch).draw(graph, found)) return found;
  const auto began = clock::now();
  for (rank_t who = 0; who < e.machine().ranks() && !found.broken; ++who) {
    if ((watched.ranks & 1u << who) == 0) continue;
    const unending parts(graph, {1u << who, watched.leaving_only});
    if (!parts.any()) continue;
    tell(graph, parts, found);
    found.what = verdict::violation;
    found.broken = judge_repetition(e, found.schedule, found.repeats, watched);
    if (!found.broken) throw std::logic_error("the checker's states do not repeat as they should");
  }
  found.seconds += std::chrono::duration<double>(clock::now() - began).count();
  return found;
}

std::optional<violation> judge_repetition(engine& e, const std::vector<step>& schedule,
                                          std::size_t repeats, const starvation& watched) {
  if (repeats == 0 || repeats > schedule.size()) return std::nullopt;
  const std::size_t first = schedule.size() - repeats;
  std::uint64_t key = 0;
  std::uint64_t owed = ~std::uint64_t{0};  // possible all along, and never done
  std::uint32_t starved = watched.ranks;   // in one round all along
  std::vector<int> entries(static_cast<std::size_t>(e.machine().ranks()));
  std::vector<step> possible;
  e.start();
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const step s = schedule[i];
    if (i == first) key = e.key();
    const stage before = e.where(s.fiber);
    if (i >= first) {
      possible.clear();
      e.enabled(possible);
      std::uint64_t duties = 0;
      for (const step p : possible) duties |= e.duty(p);
      owed &= duties & ~e.duty(s);
      starved &= watched.leaving_only ? e.leaving() : e.in_round();
    }
    e.take(s);
    if (i >= first && !is_in(before) && is_in(e.where(s.fiber)))
      ++entries[static_cast<std::size_t>(s.fiber)];
  }
  if (e.key() != key || owed != 0 || starved == 0) return std::nullopt;
  return violation{"starvation", describe(e, starved, entries, repeats)};
}

}  // namespace lockflight::check
