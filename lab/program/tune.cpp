// lockflight tune: finds a lock's parameters for a workload by measuring.
#include "lab/tune/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "lab/bench/json/host.hpp"
#include "lab/bench/plan/launch.hpp"
#include "lab/program/bench_request.hpp"
#include "lab/program/commands.hpp"
#include "lab/program/open_files.hpp"
#include "lab/program/output_file.hpp"
#include "lab/program/progress.hpp"
#include "tool/console.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"
#include "tool/version.hpp"

namespace lockflight::lab {
namespace {

constexpr unsigned usual_turns = 5;
constexpr double usual_budget_s = 60;
constexpr std::uint64_t usual_simulated_runs = 1'000;
constexpr double usual_run_s = 0.1;

// ---- requests ----

std::vector<std::string> tunable_names() {
  std::vector<std::string> names;
  for (const auto& row : bench::lock_table())
    if (!row.parameters.empty()) names.emplace_back(row.about.name);
  return names;
}

std::vector<std::string> objective_names() {
  std::vector<std::string> names;
  for (const tune::objective& o : tune::objectives()) names.push_back(o.name);
  return names;
}

std::vector<std::string> parameter_names() {
  std::vector<std::string> names;
  for (const auto& row : bench::lock_table())
    for (const auto& p : row.parameters)
      if (std::find(names.begin(), names.end(), p.name) == names.end()) names.emplace_back(p.name);
  return names;
}

const tune::objective& objective_of(const arguments& given) {
  const std::string name = given.one("--objective").value_or("throughput");
  for (const tune::objective& o : tune::objectives())
    if (o.name == name) return o;
  throw unknown_name("--objective", name, objective_names());
}

tune::parameter_request parameter_request_of(const std::string& text) {
  constexpr const char* accepted = "a parameter, or one and values for it, such as T_R=100,1000";
  const std::size_t equals = text.find('=');
  tune::parameter_request made{.name = text.substr(0, equals), .values = {}};
  if (made.name.empty()) throw refuse("--parameter", text, accepted);
  if (equals == std::string::npos) return made;
  for (const std::string& value : words("--parameter", text.substr(equals + 1), accepted)) {
    std::string one = made.name;
    one.append("=").append(value);
    made.values.push_back(assignment("--parameter", one).second);
  }
  return made;
}

std::vector<tune::parameter_request> parameter_requests_of(const arguments& given) {
  std::vector<tune::parameter_request> requests;
  for (const std::string& text : given.all("--parameter")) {
    requests.push_back(parameter_request_of(text));
    for (std::size_t i = 0; i + 1 < requests.size(); ++i)
      if (requests[i].name == requests.back().name)
        throw refuse("--parameter", text, "each parameter once");
  }
  return requests;
}

tune::budget budget_of(const arguments& given, bool simulated) {
  constexpr std::uint64_t most_runs = 1'000'000'000;
  constexpr double most_s = 1'000'000;
  const auto runs = given.one("--runs");
  const auto seconds = given.one("--budget");
  if (runs && seconds)
    throw refuse(
        "--runs", *runs,
        fmt::format("--runs or --budget, not both; --budget is {} already", shown(*seconds)));
  if (runs) return {.runs = whole_number("--runs", *runs, 1, most_runs), .seconds = 0};
  if (seconds) return {.runs = 0, .seconds = seconds_number("--budget", *seconds, 0.001, most_s)};
  if (simulated) return {.runs = usual_simulated_runs, .seconds = 0};
  return {.runs = 0, .seconds = usual_budget_s};
}

/// The searches, one for each lock. An option about a parameter applies to the locks that have it.
std::vector<tune::request> searches_of(const arguments& given) {
  constexpr unsigned most_turns = 1'000;
  if (!given.has("--lock"))
    throw refuse("--lock", "", fmt::format("locks to tune, of {}", joined(tunable_names())));
  for (const std::string& name :
       words("--lock", joined(given.all("--lock"), ","), "names of locks joined by commas"))
    if (name == "all") throw refuse("--lock", name, joined(tunable_names()));
  bench::request run = bench_request(given);
  const bool simulated = run.fabric == "sim";
  if (given.has("--procs") && run.procs.size() > 1)
    throw refuse("--procs", joined(given.all("--procs"), ","), "one number of ranks");
  run.procs = {run.procs.back()};
  if (!simulated && run.ops == 0 && !given.has("--seconds")) run.seconds = usual_run_s;
  tune::request all{.run = run,
                    .parameters = parameter_requests_of(given),
                    .aim = objective_of(given),
                    .turns = usual_turns,
                    .most = budget_of(given, simulated)};
  if (const auto turns = given.one("--turns"))
    all.turns = static_cast<unsigned>(whole_number("--turns", *turns, 1, most_turns));

  std::vector<tune::request> searches;
  for (const std::string& name : run.locks) {
    tune::request one = all;
    one.run.locks = {name};
    if (run.locks.size() > 1) {
      const auto row = std::find_if(bench::lock_table().begin(), bench::lock_table().end(),
                                    [&](const auto& r) { return r.about.name == name; });
      const auto is_another = [&](const std::string& parameter) {
        return catalogue::find(row->parameters, parameter) == nullptr;
      };
      std::erase_if(one.run.set, [&](const auto& set) { return is_another(set.first); });
      std::erase_if(one.parameters, [&](const auto& asked) { return is_another(asked.name); });
    }
    tune::validate(one);
    searches.push_back(std::move(one));
  }
  return searches;
}

// ---- output ----

/// Three digits for counts of operations, more for an index of fairness.
std::string value_of(const tune::objective& aim, double value) {
  return aim.name == "fairness" ? fmt::format("{:.4f}", value) : scaled(value);
}

std::string settings_said(const tune::setting& set) {
  std::vector<std::string> all;
  for (const auto& [name, value] : set) all.push_back(fmt::format("{}={}", name, value));
  return joined(all, " ");
}

std::string title_of(const tune::outcome& of) {
  const nlohmann::json& run = of.run_of(of.start);
  std::string out =
      fmt::format("{}, {} on {}", run.at("lock").get<std::string>(),
                  run.at("workload").get<std::string>(), run.at("fabric").get<std::string>());
  if (run.at("machine").is_string())
    out += fmt::format(", machine {}", run.at("machine").get<std::string>());
  out += fmt::format(", procs {}, levels {}, F_W {:.3g} %", run.at("procs").get<int>(),
                     run.at("levels").get<std::string>(), 100 * run.at("writers").get<double>());
  return out;
}

void print_tried(console& out, const tune::outcome& of) {
  const tune::objective& aim = of.asked.aim;
  const std::string what = aim.unit.empty() ? aim.name : aim.name + " " + aim.unit;
  table shown({{.title = "tried", .numeric = false},
               {.title = "value"},
               {.title = what},
               {.title = "spread", .importance = 2},
               {.title = "best so far", .importance = 1},
               {.title = "spread", .importance = 2},
               {.title = "", .numeric = false}});
  for (const tune::attempt& a : of.attempts) {
    const bool better = a.is == tune::verdict::better;
    shown.add_row(
        {{a.moved},
         {std::to_string(a.value)},
         {value_of(aim, a.candidate.median())},
         {value_of(aim, a.candidate.spread())},
         {value_of(aim, a.best.median())},
         {value_of(aim, a.best.spread())},
         {better ? "better, kept" : tune::to_string(a.is), better ? style::good : style::plain}});
  }
  static_cast<void>(shown.print(out));
}

/// The outcome, in a sentence.
std::string conclusion(const tune::outcome& of) {
  const bool simulated = of.asked.run.fabric == "sim";
  const std::string again = simulated ? "with seeds that the search has not used" : "in turn";
  std::string out;
  if (of.last.gained)
    out = fmt::format("Gained: {} {:.3g} times as good as the defaults, measured once more {}.",
                      of.asked.aim.name, of.gain(), again);
  else if (of.best == of.start)
    out = "Nothing gained: no step was better by more than chance. The defaults are kept.";
  else
    out = fmt::format(
        "Nothing gained: measured once more {}, the best setting is not better by more "
        "than chance. The defaults are kept.",
        again);
  if (!of.finished) out += " The budget was spent before the search was over.";
  return out;
}

void print_outcome(console& out, const tune::outcome& of) {
  const tune::objective& aim = of.asked.aim;
  out.line(out.paint(style::heading, title_of(of)));
  out.line();
  print_tried(out, of);
  out.line();
  table shown({{.title = "", .numeric = false},
               {.title = aim.unit.empty() ? aim.name : aim.name + " " + aim.unit},
               {.title = "spread", .importance = 1},
               {.title = "p99 µs", .importance = 3},
               {.title = "wait µs", .importance = 3},
               {.title = "fairness", .importance = 2},
               {.title = "parameters", .numeric = false}});
  const auto number = [](const nlohmann::json& value) {
    return value.is_number() ? rounded(value.get<double>()) : "–";
  };
  const auto row = [&](const char* name, const tune::sample& is, const tune::setting& set) {
    const nlohmann::json& run = of.run_of(set);
    shown.add_row({{name},
                   {value_of(aim, is.median())},
                   {value_of(aim, is.spread())},
                   {number(run.at("latency_us").at("p99"))},
                   {number(run.at("max_wait_us"))},
                   {number(run.at("fairness_jain"))},
                   {settings_said(set)}});
  };
  row("default", of.last.start, of.start);
  if (of.best != of.start) row("found", of.last.found, of.best);
  static_cast<void>(shown.print(out));
  out.line();
  out.line(conclusion(of));
  out.line(fmt::format("{} of {} each in {}.", counted(of.attempts.size(), "candidate"),
                       counted(of.asked.turns, of.asked.run.fabric == "sim" ? "seed" : "turn"),
                       counted(of.runs, "run")));
  out.line();
}

// ---- carrying it out ----

struct tuning_files {
  std::optional<output_file> json;
  std::optional<output_file> profile;
  bool json_on_standard_output = false;

  void open_all(const arguments& given) {
    const auto to = given.one("--json");
    json_on_standard_output = to == "-";
    if (to && !json_on_standard_output) json.emplace("--json", *to);
    if (const auto out = given.one("--out")) profile.emplace("--out", *out);
    refuse_same(profile, "--out", json, "--json");
  }
};

std::string where_it_stands(const tune::request& search, const tune::progress& now,
                            double seconds) {
  std::string out = fmt::format("[run {}", now.runs + 1);
  if (search.most.runs > 0) out += fmt::format(" of at most {}", search.most.runs);
  out += fmt::format("] {} {}: {:.0f} %, {:.0f} s", search.run.locks.front(),
                     now.trying.empty() ? "once more" : now.trying, 100 * now.fraction, seconds);
  if (search.most.seconds > 0) out += fmt::format(" of {:.0f}", search.most.seconds);
  return out;
}

int run_tune(const arguments& given, console& out) {
  const std::vector<tune::request> searches = searches_of(given);
  tuning_files files;
  open_files(bench::launch_of(searches.front().run.fabric), [&] { files.open_all(given); });
  std::map<std::string, profile::entry> found;
  nlohmann::json tuned = nlohmann::json::array();
  for (const tune::request& search : searches) {
    std::optional<tune::outcome> made;
    try {
      progress_line line;
      made = tune::tune(search, [&](const tune::progress& now) {
        line.show(where_it_stands(search, now, line.seconds()));
      });
    } catch (const tune::broken& e) {
      out.finish();
      if (bench::speaks())
        std::fputs(
            fmt::format("lockflight tune: {}: {}\n", search.run.locks.front(), e.what()).c_str(),
            stderr);
      return 1;
    }
    if (!bench::speaks()) continue;
    found.emplace(search.run.locks.front(), tune::entry_of(*made));
    tuned.push_back(tune::to_json(*made));
    if (!files.json_on_standard_output) print_outcome(out, *made);
  }
  if (!bench::speaks()) return 0;
  const nlohmann::json result{
      {"lockflight", version()}, {"host", bench::host_facts()}, {"tuned", std::move(tuned)}};
  if (files.json_on_standard_output) out.line(result.dump(2));
  const auto say = [&](const output_file& file) {
    if (!files.json_on_standard_output) out.line("wrote " + file.path());
  };
  if (files.json) {
    files.json->commit(result.dump(2) + "\n");
    say(*files.json);
  }
  if (files.profile) {
    files.profile->commit("# Made by 'lockflight tune'. What is not named has its default.\n" +
                          profile(found).text());
    say(*files.profile);
  }
  return 0;
}

// ---- options ----

std::vector<option> options_of_the_run() {
  std::vector<option> all;
  for (option& o : bench_request_options()) {
    if (o.name == "--sweep" || o.name == "--profile" || o.name == "--operation" ||
        o.name == "--flags-at" || o.name == "--sample" || o.name == "--witness")
      continue;
    if (o.name == "--lock") {
      o.value = "A[,B]";
      o.what = "the lock to tune, or several to tune one after the other";
      o.known = tunable_names();
    } else if (o.name == "--procs") {
      o.value = "N";
      o.what =
          "the number of ranks (default: one for each core, sim: 64, or the product of --levels)";
      o.repeats = false;
    } else if (o.name == "--seconds") {
      o.what = "how many seconds each run takes (default: 0.1; sim: of virtual time, 0.001)";
    } else if (o.name == "--set") {
      o.what = "hold a parameter at this value; may be given several times";
    }
    all.push_back(std::move(o));
  }
  return all;
}

std::vector<option> tune_options() {
  using enum option::offer;
  std::vector<option> all = options_of_the_run();
  all.push_back({.name = "--parameter",
                 .value = "NAME[=A,B,...]",
                 .what = "tune this parameter, among these values or over all its range; may be "
                         "given several times (default: all parameters of the lock)",
                 .completes = words,
                 .known = parameter_names(),
                 .repeats = true});
  all.push_back({.name = "--objective",
                 .value = "WHAT",
                 .what = "the measure to improve, see below (default: throughput)",
                 .completes = words,
                 .known = objective_names()});
  all.push_back({.name = "--turns",
                 .value = "N",
                 .what = "how often a candidate and the best are measured, in turn; sim: the "
                         "number of seeds (default: 5)"});
  all.push_back({.name = "--budget",
                 .value = "SECONDS",
                 .what = "how long the search for each lock may take (default: 60; none on sim)"});
  all.push_back({.name = "--runs",
                 .value = "N",
                 .what = "how many runs the search may take, instead (default on sim: 1000)"});
  all.push_back({.name = "--out",
                 .value = "FILE",
                 .what = "write the profile, for 'lockflight bench --profile' and programs",
                 .completes = files});
  all.push_back({.name = "--json",
                 .value = "FILE|-",
                 .what = "write all that was tried as JSON; - prints that alone, instead of the "
                         "tables",
                 .completes = files});
  return all;
}

glossary objective_glossary() {
  glossary made{"Objectives", {}};
  for (const tune::objective& o : tune::objectives()) made.entries.emplace_back(o.name, o.what);
  return made;
}

}  // namespace

command tune_command() {
  return {
      .description =
          {"Runs a workload with one value after the other of each of a lock's parameters, and "
           "keeps the better one. A parameter goes up and down from its default by factors of 16, "
           "then 4, then 2. When all have been moved, they are moved again, until nothing gains. "
           "The candidate and the best so far are measured in turn, and a candidate is kept if "
           "its median is better by more than the spread of either. On a simulated machine a run "
           "is the same each time, so both are measured with several seeds.",
           "At the end the defaults and the best are measured once more. If that shows no gain, "
           "the defaults are kept. The profile holds the parameters that differ from the "
           "defaults. LOCKFLIGHT_PROFILE=FILE gives it to programs that use the library for C, "
           "and to programs under the drop-in for MPI."},
      .options = tune_options(),
      .terms = objective_glossary,
      .examples =
          {{"lockflight tune --lock flight --levels 2x2 --writers 1 --budget 20",
            "tune a mutex on this machine, cut into two nodes"},
           {"lockflight tune --fabric sim --machine piz-daint --lock rma-rw --procs 64 --writers "
            "0.25 --out profile.toml",
            "tune a reader-writer lock on a simulated cluster"},
           {"lockflight tune --lock rma-rw --parameter T_R=100,1000,10000 --objective p99",
            "choose one of three values, for the shortest of the longest waits"}},
      .run = run_tune,
  };
}

}  // namespace lockflight::lab
