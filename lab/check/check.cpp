#include "lab/check/check.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "catalogue/nearest.hpp"
#include "lab/check/replay_text.hpp"
#include "lab/check/search/fair.hpp"
#include "lab/check/search/starvation.hpp"
#include "lab/check/trace.hpp"

namespace lockflight::check {
namespace {

[[nodiscard]] int participants(const request& r) {
  int all = 0;
  for (const part_row& row : part_rows) all += r.*row.count;
  return all;
}

void require_count(const char* argument, int value, int least, int most) {
  if (value < least || value > most)
    throw bad_request(std::string(argument) + " " + std::to_string(value) +
                      " (accepted: " + std::to_string(least) + " to " + std::to_string(most) + ")");
}

/// Parts are assigned round robin, so that every node has some of each.
[[nodiscard]] std::vector<part> deal(const request& r) {
  request left = r;
  std::vector<part> parts;
  while (static_cast<int>(parts.size()) < participants(r))
    for (const part_row& row : part_rows)
      if (left.*row.count > 0) {
        parts.push_back(row.what);
        --(left.*row.count);
      }
  return parts;
}

[[nodiscard]] bool is_watched(part of, watched who) {
  switch (who) {
    case watched::nobody:
      return false;
    case watched::writers:
      return of == part::writer;
    case watched::readers:
      return of == part::reader;
    case watched::all:
      return of == part::writer || of == part::reader;
    case watched::tries:
      return of == part::try_writer || of == part::try_reader || of == part::timed_writer ||
             of == part::timed_reader;
    case watched::leaving:
      return true;
  }
  return false;
}

[[nodiscard]] starvation watched_of(const std::vector<part>& parts, watched who) {
  starvation of{.ranks = 0, .leaving_only = who == watched::leaving};
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (is_watched(parts[i], who)) of.ranks |= 1u << i;
  return of;
}

void validate_starvation(const subject& lock, const request& r) {
  const std::string argument = std::string("--starvation ") + name_of(r.starvation) + ": ";
  if (lock.about.defers && r.starvation == watched::leaving)
    throw bad_request(argument + std::string(lock.about.name) +
                      " does all of an epoch at its release (accepted: writers, readers, all)");
  if (r.random) throw bad_request(argument + "not with --random (accepted: the whole search)");
  if (watched_of(deal(r), r.starvation).ranks == 0)
    throw bad_request(argument + "there is none of them (accepted: participants of the check)");
  if (!engine::can_copy_stacks())
    throw bad_request(argument +
                      "states cannot be known again under a sanitizer (accepted: a "
                      "build without)");
}

/// "--deaths 1", or "--stops 1" if no participant dies.
[[nodiscard]] std::string mortality(const request& r) {
  return r.how.deaths > 0 ? "--deaths " + std::to_string(r.how.deaths)
                          : "--stops " + std::to_string(r.how.stops);
}
[[nodiscard]] bool is_mortal(const request& r) { return r.how.deaths > 0 || r.how.stops > 0; }

void validate_mortality(const subject& lock, const request& r) {
  require_count("--deaths", r.how.deaths, 0, 2);
  require_count("--stops", r.how.stops, 0, 2);
  const std::string argument = mortality(r) + ": ";
  if (lock.make_mortal == nullptr)
    throw bad_request(argument + std::string(lock.about.name) +
                      " needs messages, and nobody survives who sends them (accepted: 0)");
  if (r.upgraders + r.upgrading_readers > 0)
    throw bad_request(argument + "not with upgraders (accepted: 0)");
}

void validate_views(const request& r) {
  if (r.starvation != watched::nobody)
    throw bad_request(
        std::string("--starvation ") + name_of(r.starvation) +
        ": not with --memory views, where a participant may read the same overwritten "
        "value for ever (accepted: with --memory tso)");
  if (!r.how.report_mixed)
    throw bad_request("--off mixed: not with --memory views (accepted: with --memory tso)");
}

void validate(const subject& lock, const request& r) {
  for (const part_row& row : part_rows) require_count(row.option, r.*row.count, 0, most_fibers);
  require_count("--rounds", r.rounds, 1, 1000);
  require_count("--retries", r.how.retries, 1, 100);
  if (participants(r) < 1 || participants(r) > most_fibers)
    throw bad_request("--writers and --readers together " + std::to_string(participants(r)) +
                      " (accepted: 1 to " + std::to_string(most_fibers) + ")");
  if (r.readers + r.try_readers > 0 && !lock.shared)
    throw bad_request("--readers " + std::to_string(r.readers + r.try_readers) + ": " +
                      std::string(lock.about.name) + " is a mutex (accepted: 0)");
  for (const part_row& row : part_rows)
    if (const char* const lacks = lock.lacks(row.what); r.*row.count > 0 && lacks != nullptr)
      throw bad_request(std::string(row.option) + " " + std::to_string(r.*row.count) + ": " +
                        std::string(lock.about.name) + " has no " + lacks + " (accepted: 0)");
  if (r.starvation != watched::nobody) validate_starvation(lock, r);
  if (r.how.most_overtaken && r.starvation != watched::nobody)
    throw bad_request("--most-overtaken " + std::to_string(*r.how.most_overtaken) +
                      ": not with --starvation, where rounds have no end (accepted: a search of "
                      "--rounds)");
  if (r.how.deaths != 0 || r.how.stops != 0) validate_mortality(lock, r);
  if (r.abandoners > 0 && !is_mortal(r))
    throw bad_request("--abandoners " + std::to_string(r.abandoners) +
                      ": only with --deaths or --stops (accepted: 0)");
  if (r.how.memory == memory_kind::views) validate_views(r);
}

[[nodiscard]] scenario scenario_of(const request& r, const std::string& levels) {
  std::vector<int> fanouts;
  try {
    fanouts = rma::parse_levels(levels);
  } catch (const std::invalid_argument& e) {
    throw bad_request("--levels " + std::string(e.what()));
  }
  int ranks = 1;
  for (const int fanout : fanouts) ranks *= fanout;
  if (ranks != participants(r))
    throw bad_request("--levels " + levels + " has " + std::to_string(ranks) +
                      " ranks (accepted: levels that multiply to the " +
                      std::to_string(participants(r)) + " participants)");
  const int depth = static_cast<int>(fanouts.size());
  require_count("--node-level", r.node_level, 0, depth);
  std::vector<int> rounds = r.rounds_of;
  if (rounds.empty()) rounds.assign(static_cast<std::size_t>(ranks), r.rounds);
  if (static_cast<int>(rounds.size()) != ranks)
    throw bad_request("--rounds of " + std::to_string(rounds.size()) +
                      " participants (accepted: one for all, or " + std::to_string(ranks) + ")");
  auto machine = rma::topology::balanced(fanouts, r.node_level);
  if (is_mortal(r) && machine.nodes() != 1)
    throw bad_request(mortality(r) + ": --levels " + levels + " has " +
                      std::to_string(machine.nodes()) + " nodes (accepted: one node)");
  return {std::move(machine), deal(r), std::move(rounds), r.starvation != watched::nobody};
}

[[nodiscard]] std::unique_ptr<engine> engine_for(const subject& lock, const request& r,
                                                 const std::string& levels) {
  try {
    const auto make = is_mortal(r) ? lock.make_mortal : lock.make;
    return make(scenario_of(r, levels), r.set, r.how);
  } catch (const std::length_error& e) {
    throw bad_request("--levels " + levels + ": " + e.what() + " (accepted: a smaller machine)");
  }
}

[[nodiscard]] std::string default_levels(int ranks, bool one_node) {
  return !one_node && ranks > 1 && ranks % 2 == 0 ? "2x" + std::to_string(ranks / 2)
                                                  : std::to_string(ranks);
}

/// A counterexample is easier to read if participants that do not matter for it come less often, or
/// never. Lowers the rounds of each participant as long as the same property breaks in no more
/// steps, for a few seconds in all.
void lower_rounds(const subject& lock, report& made) {
  constexpr double most_seconds = 10;
  request smaller = made.asked;
  smaller.until.seconds = most_seconds / static_cast<double>(made.parts.size() * 2);
  if (smaller.rounds_of.empty()) smaller.rounds_of.assign(made.parts.size(), smaller.rounds);
  for (int& rounds : smaller.rounds_of) {
    const int given = rounds;
    for (rounds = 0; rounds < given; ++rounds) {
      const auto e = engine_for(lock, smaller, made.levels);
      outcome found;
      try {
        found = search_all(*e, smaller.until);
      } catch (const limit_exceeded&) {
        continue;
      }
      if (found.what != verdict::violation ||
          found.broken->property != made.found.broken->property ||
          found.schedule.size() > made.found.schedule.size())
        continue;
      made.asked.rounds_of = smaller.rounds_of;
      made.found.broken = found.broken;
      made.found.schedule = found.schedule;
      break;
    }
  }
}

}  // namespace

const subject& subject_named(const std::string& name) {
  std::vector<std::string> known;
  for (const subject& s : subjects()) {
    if (s.about.name == name) return s;
    known.emplace_back(s.about.name);
  }
  const char* const why = name.starts_with("pthread-")
                              ? ": not checkable, it is not written against the contract "
                              : " ";
  throw bad_request("--lock '" + name + "'" + why + catalogue::accepted_names(name, known));
}

const char* name_of(watched who) {
  switch (who) {
    case watched::nobody:
      break;
    case watched::writers:
      return "writers";
    case watched::readers:
      return "readers";
    case watched::all:
      return "all";
    case watched::leaving:
      return "leaving";
    case watched::tries:
      return "tries";
  }
  return "";
}

watched watched_named(const std::string& name) {
  for (const watched who :
       {watched::writers, watched::readers, watched::all, watched::leaving, watched::tries})
    if (name == name_of(who)) return who;
  throw bad_request("--starvation '" + name +
                    "' (accepted: writers, readers, all, leaving, tries)");
}

report run(const subject& lock, const request& what, const search_progress& watch) {
  validate(lock, what);
  report made{.asked = what,
              .levels = what.levels.empty() ? default_levels(participants(what), is_mortal(what))
                                            : what.levels,
              .parts = deal(what),
              .found = {},
              .trace = {},
              .replay = {}};
  made.asked.lock = lock.about.name;
  const auto e = engine_for(lock, what, made.levels);
  const bool endless = what.starvation != watched::nobody;
  try {
    if (endless)
      made.found =
          search_starvation(*e, watched_of(made.parts, what.starvation), what.until, watch);
    else
      made.found = what.random ? search_random(*e, what.random_until, watch)
                               : search_all(*e, what.until, watch);
  } catch (const limit_exceeded& limit) {
    throw bad_request("--lock " + made.asked.lock + " with " + std::to_string(made.parts.size()) +
                      " participants: " + limit.what() +
                      " (accepted: fewer participants, rounds, deaths or stops)");
  }
  if (made.found.what == verdict::violation) {
    if (!what.random && !endless && what.until.shorten) lower_rounds(lock, made);
    const auto repeated = engine_for(lock, made.asked, made.levels);
    made.trace = trace_of(*repeated, made.found.schedule);
    made.replay = to_replay_text(made);
  }
  return made;
}

report run(const request& what, const search_progress& watch) {
  return run(subject_named(what.lock), what, watch);
}

report replay(const subject& lock, const std::string& text) {
  auto [asked, schedule, repeats] = from_replay_text(text);
  validate(lock, asked);
  report made{.asked = asked,
              .levels = asked.levels,
              .parts = deal(asked),
              .found = {},
              .trace = {},
              .replay = text};
  const auto e = engine_for(lock, asked, asked.levels);
  e->start();
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    if (!e->is_enabled(schedule[i]))
      throw bad_request("--replay: the lock has changed: step " + std::to_string(i + 1) + " of " +
                        std::to_string(schedule.size()) + ", by rank " +
                        std::to_string(schedule[i].fiber) +
                        ", cannot happen any more (accepted: a string made by this version)");
    e->take(schedule[i]);
    made.found.schedule.push_back(schedule[i]);
    ++made.found.transitions;
    if (e->broken()) break;
  }
  made.found.executions = 1;
  made.found.broken = e->broken();
  std::vector<step> more;
  e->enabled(more);
  if (!made.found.broken && repeats > 0) {
    made.found.repeats = repeats;
    made.found.broken = judge_repetition(*e, made.found.schedule, repeats,
                                         watched_of(made.parts, asked.starvation));
  } else if (!made.found.broken && asked.starvation != watched::nobody) {
    if (e->nobody_goes_on()) made.found.broken = e->describe_deadlock();
  } else if (!made.found.broken && e->only_unflushed(more)) {
    made.found.broken = judge_end(*e);
  }
  made.found.what = made.found.broken ? verdict::violation : verdict::bound;
  made.trace = trace_of(*e, made.found.schedule);
  return made;
}

report replay(const std::string& text) {
  return replay(subject_named(from_replay_text(text).asked.lock), text);
}

}  // namespace lockflight::check
