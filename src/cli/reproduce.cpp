// lockflight reproduce: the papers' claims about speed, measured on models of their machines.
#include "reproduce/reproduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/output_file.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "cli/usage.hpp"
#include "cli/values.hpp"

namespace lockflight::cli {
namespace {

using reproduce::claim;
using reproduce::outcome;
using reproduce::paper;

constexpr const char* every_paper = "all";

std::vector<std::string> paper_names() {
  std::vector<std::string> names = reproduce::names_of_papers();
  names.insert(names.begin(), every_paper);
  return names;
}

std::vector<paper> chosen_papers(const arguments& given) {
  const std::string name = given.one("PAPER").value_or(every_paper);
  const std::vector<std::string> known = paper_names();
  const bool is_file = name.find_first_of("./") != std::string::npos;
  if (!is_file && std::find(known.begin(), known.end(), name) == known.end())
    throw unknown_name("PAPER", name, known);
  return reproduce::find_papers(name);
}

std::vector<const claim*> chosen_claims(const std::vector<paper>& papers, bool quick) {
  std::vector<const claim*> chosen;
  for (const paper& p : papers)
    for (const claim& c : p.claims)
      if (!quick || c.quick) chosen.push_back(&c);
  return chosen;
}

std::string theirs(const claim& c) {
  const std::string value = fmt::format("{:g} {}", c.value, c.unit);
  return c.how_close == reproduce::kind::direction ? fmt::format("{} {}", c.relation, value)
                                                   : value;
}

std::string claims_counted(std::size_t n) { return counted(n, "claim"); }

std::string remark(const outcome& o) { return !o.why.empty() ? o.why : o.of->note; }

void print_heading(console& out, const paper& p) {
  out.line(out.paint(style::heading, p.name + ": " + p.title));
  out.line("on a model of " + p.machine);
}

void print_outcomes(console& out, const paper& p, const std::vector<outcome>& outcomes) {
  table shown({{.title = "claim", .numeric = false},
               {.title = "what", .numeric = false, .importance = 2},
               {.title = "paper"},
               {.title = "ours"},
               {.title = "verdict", .numeric = false},
               {.title = "calibrated", .numeric = false, .importance = 3},
               {.title = "remark", .numeric = false, .importance = 1}});
  std::size_t rows = 0;
  std::size_t held = 0;
  for (const outcome& o : outcomes) {
    const claim& c = *o.of;
    if (c.paper != p.name) continue;
    ++rows;
    held += o.holds ? 1 : 0;
    shown.add_row({{c.id},
                   {c.what},
                   {theirs(c)},
                   {o.ours ? rounded(*o.ours) : "–"},
                   {o.holds ? "holds" : "misses", o.holds ? style::good : style::bad},
                   {c.calibrated ? "yes" : ""},
                   {o.holds ? "" : remark(o), style::faint}});
  }
  if (rows == 0) return;
  print_heading(out, p);
  static_cast<void>(shown.print(out));
  out.line(fmt::format("{} of {} hold", held, claims_counted(rows)));
  out.line();
}

int list(const std::vector<paper>& papers, bool quick, console& out) {
  for (const paper& p : papers) {
    table shown({{.title = "claim", .numeric = false},
                 {.title = "where", .numeric = false, .importance = 1},
                 {.title = "what", .numeric = false},
                 {.title = "paper"},
                 {.title = "calibrated", .numeric = false, .importance = 2}});
    print_heading(out, p);
    for (const claim& c : p.claims)
      if (!quick || c.quick)
        shown.add_row({{c.id}, {c.where}, {c.what}, {theirs(c)}, {c.calibrated ? "yes" : ""}});
    static_cast<void>(shown.print(out));
    out.line();
  }
  return 0;
}

std::string describe(const reproduce::standing& now, double seconds) {
  std::string text =
      fmt::format("[{}/{}] {} left", now.done, now.of, claims_counted(now.claims_left));
  if (!now.now.empty()) text += ": " + joined(now.now);
  return text + fmt::format(", {:.0f} s", seconds);
}

struct claim_files {
  std::optional<output_file> json;
  std::optional<output_file> html;
  bool json_on_standard_output = false;

  explicit claim_files(const arguments& given) {
    const auto to = given.one("--json");
    json_on_standard_output = to == "-";
    if (to && !json_on_standard_output) json.emplace("--json", *to);
    if (const auto page = given.one("--html")) html.emplace("--html", *page);
    namespace fs = std::filesystem;
    if (json && html &&
        fs::absolute(json->target()).lexically_normal() ==
            fs::absolute(html->target()).lexically_normal())
      throw refuse("--html", html->path(), "another file than that of --json");
  }
};

int run_reproduce(const arguments& given, console& out) {
  const std::vector<paper> papers = chosen_papers(given);
  const bool quick = given.has("--quick");
  if (given.has("--list")) {
    for (const char* const name : {"--json", "--html", "--jobs"})
      if (given.has(name)) throw refuse(name, *given.one(name), "not together with --list");
    return list(papers, quick, out);
  }
  reproduce::how way;
  if (const auto jobs = given.one("--jobs"))
    way.at_a_time = static_cast<unsigned>(whole_number("--jobs", *jobs, 1, 1024));
  claim_files files(given);
  std::vector<outcome> outcomes;
  {
    progress_line line;
    way.tell = [&](const reproduce::standing& now) { line.show(describe(now, line.seconds())); };
    outcomes = reproduce::carry_out(chosen_claims(papers, quick), way);
  }
  const std::string json = reproduce::to_json(outcomes).dump(2) + "\n";
  if (files.json_on_standard_output)
    out.print(json);
  else
    for (const paper& p : papers) print_outcomes(out, p, outcomes);
  const auto say = [&](const output_file& file) {
    if (!files.json_on_standard_output) out.line("wrote " + file.path());
  };
  if (files.json) {
    files.json->commit(json);
    say(*files.json);
  }
  if (files.html) {
    files.html->commit(reproduce::render_html(papers, outcomes));
    say(*files.html);
  }
  return std::all_of(outcomes.begin(), outcomes.end(), [](const outcome& o) { return o.holds; })
             ? 0
             : 1;
}

glossary paper_glossary() {
  glossary made{"Papers", {}};
  for (const paper& p : reproduce::find_papers(every_paper))
    made.entries.emplace_back(
        p.name, fmt::format("{}; {} on {}", p.title, claims_counted(p.claims.size()), p.machine));
  return made;
}

}  // namespace

command reproduce_command() {
  using enum option::offer;
  return {
      .name = "reproduce",
      .summary = "measure what the papers claim about speed, claim by claim",
      .description =
          {"Runs the locks on simulated models of the machines that the papers used, and holds "
           "each of the papers' statements about speed beside what comes out. A ratio holds within "
           "a factor of 1.5, a value within 30 %, a direction if it points the same way. What "
           "cannot be measured counts as missed and says why.",
           "Runs that several claims need are carried out once, and as many at a time as there "
           "are processors. The exit code is 1 if any claim is missed."},
      .options = {{.name = "PAPER",
                   .what = "all, the name of a paper, or a claim file such as claims/rma.toml "
                           "(default: all)",
                   .completes = words,
                   .known = paper_names()},
                  {.name = "--quick", .what = "only the claims that are measured in a moment"},
                  {.name = "--list", .what = "list the claims and measure nothing"},
                  {.name = "--jobs",
                   .value = "N",
                   .what = "so many runs at a time (default: one for each processor)"},
                  {.name = "--json",
                   .value = "FILE|-",
                   .what = "write the results as JSON; - prints that alone, instead of the tables",
                   .completes = files},
                  {.name = "--html",
                   .value = "FILE",
                   .what = "write a page with a row for each claim and a chart for each figure",
                   .completes = files}},
      .glossaries = {paper_glossary()},
      .examples = {{"lockflight reproduce fx100", "the claims of one paper"},
                   {"lockflight reproduce --quick", "a few of each paper, in seconds"},
                   {"lockflight reproduce all --json claims.json --html claims.html",
                    "everything, in some minutes, and a page with charts"}},
      .run = run_reproduce,
  };
}

}  // namespace lockflight::cli
