// lockflight check: searches a lock's schedules for one that breaks a rule.
#include "lab/check/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "lab/program/cluster_check.hpp"
#include "lab/program/commands.hpp"
#include "lab/program/output_file.hpp"
#include "lab/program/progress.hpp"
#include "tool/console.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::lab {
namespace {

constexpr std::uint64_t most_seconds = 1'000'000;

std::vector<std::string> names_of_locks() {
  std::vector<std::string> names;
  for (const check::subject& s : check::subjects()) names.emplace_back(s.about.name);
  return names;
}

int count(const arguments& given, const char* name, int otherwise, int min, int max) {
  const auto text = given.one(name);
  if (!text) return otherwise;
  return static_cast<int>(
      whole_number(name, *text, static_cast<std::uint64_t>(min), static_cast<std::uint64_t>(max)));
}

void read_model(const arguments& given, check::request& asked) {
  asked.how.retries = count(given, "--retries", asked.how.retries, 1, 100);
  if (const auto which = given.one("--memory")) {
    if (which != "tso" && which != "views")
      throw unknown_name("--memory", *which, {"tso", "views"});
    if (which == "views") asked.how.memory = check::memory_kind::views;
  }
  for (const std::string& off : given.all("--off")) {
    if (off == "delays")
      asked.how.delayed_effects = false;
    else if (off == "buffers")
      asked.how.store_buffering = false;
    else if (off == "reordering")
      asked.how.reordering = false;
    else if (off == "mixed")
      asked.how.report_mixed = false;
    else
      throw unknown_name("--off", off, {"delays", "reordering", "buffers", "mixed"});
  }
}

void read_limits(const arguments& given, check::request& asked) {
  asked.random = given.has("--random");
  if (const auto text = given.one("--seconds")) {
    asked.until.seconds = seconds_number("--seconds", *text, 0.001, double{most_seconds});
    asked.random_until.seconds = asked.until.seconds;
  }
  if (const auto text = given.one("--seed"))
    asked.random_until.seed = whole_number("--seed", *text, 0, UINT64_MAX);
  if (const auto text = given.one("--executions"))
    asked.random_until.executions = whole_number("--executions", *text, 1, UINT64_MAX);
  asked.random_until.depth = count(given, "--depth", asked.random_until.depth, 1, 100);
  for (const char* const name : {"--seed", "--executions", "--depth"})
    if (given.has(name) && !asked.random)
      throw refuse(name, *given.one(name), "only together with --random");
}

void read_rounds(const arguments& given, check::request& asked) {
  const auto text = given.one("--rounds");
  if (!text) return;
  asked.rounds_of = each_whole_number("--rounds", *text, 0, 1000);
  asked.rounds = *std::max_element(asked.rounds_of.begin(), asked.rounds_of.end());
  if (asked.rounds == 0)
    throw refuse("--rounds", *text, "1 to 1000, or with commas 0 for some of them");
  if (asked.rounds_of.size() == 1) asked.rounds_of.clear();
}

check::request request_from(const arguments& given) {
  check::request asked;
  if (!given.has("--lock"))
    throw usage_error(
        fmt::format("--lock is missing (accepted: {})", joined(names_of_locks(), ", ")));
  asked.lock = *given.one("--lock");
  const check::subject& lock = check::subject_named(asked.lock);
  const int most = check::most_fibers;
  asked.readers = lock.shared ? 1 : 0;
  asked.writers = lock.shared ? 1 : 2;
  for (const check::part_row& row : check::part_rows)
    asked.*row.count = count(given, row.option, asked.*row.count, 0, most);
  read_rounds(given, asked);
  if (const auto who = given.one("--starvation")) {
    asked.starvation = check::watched_named(*who);
    if (given.has("--rounds") && (asked.rounds_of.empty() || asked.rounds > 1))
      throw refuse("--rounds", *given.one("--rounds"),
                   "with --starvation only 1 or 0 of each, 0 for a participant that never comes");
    if (given.has("--retries"))
      throw refuse("--retries", *given.one("--retries"),
                   "not with --starvation, where attempts have no end");
  }
  asked.how.deaths = count(given, "--deaths", 0, 0, 2);
  asked.how.stops = count(given, "--stops", 0, 0, 2);
  if (given.has("--most-overtaken"))
    asked.how.most_overtaken = count(given, "--most-overtaken", 0, 0, 1'000'000);
  asked.levels = given.one("--levels").value_or("");
  asked.node_level = count(given, "--node-level", 0, 0, 100);
  for (const std::string& text : given.all("--set")) {
    const auto [name, value] = assignment("--set", text);
    asked.set[name] = value;
  }
  read_model(given, asked);
  read_limits(given, asked);
  return asked;
}

std::string headline(const check::report& made) {
  const check::outcome& found = made.found;
  const double speed =
      found.seconds > 0 ? static_cast<double>(found.states) / found.seconds / 1e6 : 0;
  std::string text =
      fmt::format("{}: {}, levels {}: {} states, {} transitions", made.asked.lock,
                  check::describe_parts(made), made.levels, found.states, found.transitions);
  if (made.asked.starvation == check::watched::nobody)
    text += fmt::format(", {} executions", found.executions);
  text += fmt::format(", {:.2f} s ({:.2f} million states a second)", found.seconds, speed);
  if (found.cut > 0 && found.what != check::verdict::ok)
    text += fmt::format("\n{} executions ended where a participant had retried {} times in vain",
                        found.cut, made.asked.how.retries);
  return text;
}

// A search with retries ends executions there: the schedules beyond them were not searched.
std::string what_was_searched(const check::report& made) {
  const check::outcome& found = made.found;
  if (made.asked.starvation != check::watched::nobody)
    return "every schedule was searched, no rule is broken, no participant starves";
  if (found.cut == 0) return "every schedule was searched, no rule is broken";
  return fmt::format(
      "every schedule of at most {} vain attempts of an acquire was searched, no rule is broken; {} "
      "executions were cut there",
      made.asked.how.retries, found.cut);
}

void print_report(console& out, const check::report& made) {
  out.line(headline(made));
  switch (made.found.what) {
    case check::verdict::ok:
      out.line(out.paint(style::good, "ok: " + what_was_searched(made)));
      break;
    case check::verdict::bound:
      if (made.found.broken || !made.replay.empty())
        out.line("replayed: no rule is broken");
      else
        out.line("bound: no rule is broken in the schedules searched, which are not all");
      break;
    case check::verdict::violation:
      out.line(out.paint(style::bad, "violation: " + made.found.broken->property));
      break;
  }
  if (made.trace.empty()) return;
  out.line();
  out.print(check::trace_table(made));
  out.line();
  out.line("replay: lockflight check --replay '" + made.replay + "'");
}

check::report search(const arguments& given) {
  try {
    if (const auto text = given.one("--replay")) return check::replay(*text);
    const check::request asked = request_from(given);
    progress_line line;
    return check::run(asked, [&](const check::outcome& sofar) {
      line.show(fmt::format("{} states, {:.1f} s", sofar.states, sofar.seconds));
      return true;
    });
  } catch (const check::bad_request& e) {
    throw usage_error(e.what());
  }
}

// A search that stopped early was asked to, or its result is not proved: 1.
int exit_code(const arguments& given, const check::report& made) {
  switch (made.found.what) {
    case check::verdict::ok:
      return 0;
    case check::verdict::violation:
      return 1;
    case check::verdict::bound:
      return given.has("--seconds") || given.has("--random") || given.has("--replay") ? 0 : 1;
  }
  return 1;
}

// The options that a check of a cluster refuses, since it has no lock of the table.
constexpr const char* options_of_locks[] = {
    "--lock",          "--writers",       "--readers",
    "--try-writers",   "--try-readers",   "--timed-writers",
    "--timed-readers", "--upgraders",     "--upgrading-readers",
    "--abandoners",    "--rounds",        "--starvation",
    "--deaths",        "--stops",         "--levels",
    "--node-level",    "--set",           "--retries",
    "--off",           "--memory",        "--random",
    "--executions",    "--depth",         "--replay",
    "--json",          "--most-overtaken"};

int run_check(const arguments& given, console& out) {
  if (given.has("--cluster")) {
    for (const char* const other : options_of_locks)
      if (given.has(other))
        throw refuse(given, other, "with --cluster only --seed, --hours and --seconds");
    return run_cluster_check(given, out);
  }
  if (given.has("--hours")) throw refuse("--hours", *given.one("--hours"), "only with --cluster");
  const bool json_on_standard_output = given.one("--json") == "-";
  std::optional<output_file> file;
  if (given.has("--json") && !json_on_standard_output) file.emplace("--json", *given.one("--json"));
  const check::report made = search(given);
  const std::string json = check::to_json(made).dump(2) + "\n";
  if (json_on_standard_output)
    out.print(json);
  else
    print_report(out, made);
  if (file) {
    file->commit(json);
    out.line("wrote " + file->path());
  }
  return exit_code(given, made);
}

std::vector<option> who_options() {
  using enum option::offer;
  return {
      {.name = "--lock",
       .value = "NAME",
       .what = "the lock to check",
       .completes = words,
       .known = names_of_locks()},
      {.name = "--writers", .value = "N", .what = "participants that take it exclusively"},
      {.name = "--readers", .value = "N", .what = "participants that take it shared"},
      {.name = "--try-writers", .value = "N", .what = "participants that only try, exclusively"},
      {.name = "--try-readers", .value = "N", .what = "participants that only try, shared"},
      {.name = "--timed-writers",
       .value = "N",
       .what = "participants that give up at any moment, or not, exclusively"},
      {.name = "--timed-readers",
       .value = "N",
       .what = "participants that give up at any moment, or not, shared"},
      {.name = "--upgraders",
       .value = "N",
       .what = "participants that take it for upgrade, write, and read before they leave"},
      {.name = "--upgrading-readers",
       .value = "N",
       .what = "participants that take it shared and try to write before they leave"},
      {.name = "--abandoners",
       .value = "N",
       .what = "with --deaths or --stops: participants whose hold is ended for them, exclusively"},
      {.name = "--rounds",
       .value = "K[,K...]",
       .what = "the rounds of each participant, as one number or one for each in the order above, "
               "0 for never (default: 1)"},
      {.name = "--starvation",
       .value = "WHO",
       .what = "let participants come without end, and check that this ends for each of them: the "
               "waiting of writers, of readers or of all, leaving, or tries",
       .completes = words,
       .known = {"writers", "readers", "all", "leaving", "tries"}},
      {.name = "--deaths",
       .value = "D",
       .what = "make the lock outlive its holders, and let at most D participants die (0 to 2)"},
      {.name = "--stops",
       .value = "S",
       .what = "the same, and let at most S participants stop for ever without dying (0 to 2)"},
      {.name = "--most-overtaken",
       .value = "N",
       .what = "how often later participants may overtake a waiter (default: the bound that the "
               "lock promises, if it promises one)"},
      {.name = "--levels",
       .value = "AxB[xC]",
       .what = "the machine (default: two nodes, or one for an odd number of participants)"},
      {.name = "--node-level",
       .value = "I",
       .what = "the level whose elements are the nodes (default: the smallest)"},
      {.name = "--set",
       .value = "NAME=VALUE",
       .what = "set a parameter of the lock; thresholds are 1 and T_R is 2 unless set",
       .repeats = true},
  };
}

std::vector<option> how_options() {
  using enum option::offer;
  return {
      {.name = "--retries",
       .value = "N",
       .what =
           "the vain attempts of one acquire after which a participant stands still (default: 2)"},
      {.name = "--memory",
       .value = "NAME",
       .what = "the memory: tso (the default) or views, release/acquire with seq_cst fences",
       .completes = words,
       .known = {"tso", "views"}},
      {.name = "--off",
       .value = "PART",
       .what = "switch a part of the memory model off: delays, reordering, buffers, mixed",
       .completes = words,
       .known = {"delays", "reordering", "buffers", "mixed"},
       .repeats = true},
      {.name = "--cluster",
       .what = "instead of a lock, simulate clusters of hosts whose agents, links, clocks and etcd "
               "fail"},
      {.name = "--hours",
       .value = "H",
       .what = "with --cluster: stop after H virtual hours (default: 100)"},
      {.name = "--seconds", .value = "S", .what = "stop after S seconds"},
      {.name = "--random", .what = "try random schedules (probabilistic concurrency testing)"},
      {.name = "--seed",
       .value = "N",
       .what = "the seed of the random schedules (default: 1), or of the history to simulate"},
      {.name = "--executions", .value = "N", .what = "the number of random schedules"},
      {.name = "--depth",
       .value = "D",
       .what = "how many ordered events a bug may need to be found (default: 3)"},
      {.name = "--replay",
       .value = "STRING",
       .what = "repeat the counterexample that an earlier search has printed",
       .completes = nothing},
      {.name = "--json",
       .value = "FILE|-",
       .what = "write the result as JSON; - prints that alone",
       .completes = files},
  };
}

std::vector<option> check_options() {
  std::vector<option> all = who_options();
  for (option& o : how_options()) all.push_back(std::move(o));
  return all;
}

}  // namespace

command check_command() {
  return {
      .description =
          {"Runs the lock's own source with a few participants in every order that a network "
           "allows: posted operations take effect at any moment until their flush, and stores are "
           "seen late. It checks mutual exclusion, deadlock, lost wake-ups, livelock, bounded "
           "overtaking, and that the lock is free when all participants have left.",
           "With --starvation it searches for an endless fair schedule in which a participant "
           "waits for ever. Such a search holds for any number of rounds.",
           "The verdict is ok if every schedule was searched in which no acquire has more vain "
           "attempts than --retries allows, violation with the shortest "
           "counterexample that was found, or bound if the search stopped early."},
      .options = check_options(),
      .examples = {{"lockflight check --lock d-mcs --writers 3 --rounds 2",
                    "search every schedule"},
                   {"lockflight check --lock rma-rw --writers 2 --readers 2 --levels 2x2",
                    "search with two nodes and delayed puts"},
                   {"lockflight check --lock rma-rw-listing --writers 1 --readers 1",
                    "find the errors of the paper's listing"},
                   {"lockflight check --lock mcs-rw-wp --writers 2 --starvation readers",
                    "search for a reader that starves while writers keep coming"},
                   {"lockflight check --cluster --hours 1000",
                    "simulate clusters for a thousand hours of their time"},
                   {"lockflight check --lock rma-mcs --writers 6 --random --seconds 30",
                    "try what is too much to search in full"}},
      .run = run_check,
  };
}

}  // namespace lockflight::lab
