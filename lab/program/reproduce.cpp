// lockflight reproduce: the papers' claims about speed, measured on models of their machines.
#include "lab/reproduce/reproduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "lab/program/commands.hpp"
#include "lab/program/output_file.hpp"
#include "lab/program/progress.hpp"
#include "lab/reproduce/page.hpp"
#include "tool/console.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::lab {
namespace {

using reproduce::claim;
using reproduce::figure;
using reproduce::outcome;
using reproduce::paper;
using run_json = nlohmann::json;

constexpr const char* every_paper = "all";
constexpr const char* no_paper = "beyond";

std::vector<std::string> paper_names() {
  std::vector<std::string> names = reproduce::names_of_papers();
  names.insert(names.begin(), every_paper);
  names.emplace_back(no_paper);
  return names;
}

std::string chosen_name(const arguments& given) { return given.one("PAPER").value_or(every_paper); }

std::vector<paper> chosen_papers(const arguments& given) {
  const std::string name = chosen_name(given);
  if (name == no_paper) return {};
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

std::vector<const figure*> figures_of(const std::vector<paper>& papers) {
  std::vector<const figure*> all;
  for (const paper& p : papers)
    for (const figure& f : p.figures) all.push_back(&f);
  return all;
}

std::vector<reproduce::curve> chosen_curves(const arguments& given) {
  const std::string name = chosen_name(given);
  if (name != every_paper && name != no_paper) return {};
  return reproduce::curves_beyond(given.has("--quick"));
}

std::string theirs(const claim& c) {
  const std::string value = fmt::format("{:g} {}", c.value, c.unit);
  return c.how_close == reproduce::kind::direction ? fmt::format("{} {}", c.relation, value)
                                                   : value;
}

std::string claims_counted(std::size_t n) { return counted(n, "claim"); }

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
  std::size_t undecided = 0;
  for (const outcome& o : outcomes) {
    const claim& c = *o.of;
    if (c.paper != p.name) continue;
    ++rows;
    held += o.holds() ? 1 : 0;
    undecided += o.said == reproduce::verdict::undecided ? 1 : 0;
    shown.add_row({{c.id},
                   {c.what},
                   {theirs(c)},
                   {o.ours ? rounded(*o.ours) : "–"},
                   {std::string(to_string(o.said)), o.holds() ? style::good : style::bad},
                   {c.calibrated ? "yes" : ""},
                   {o.holds() ? "" : remark_of(o), style::faint}});
  }
  if (rows == 0) return;
  print_heading(out, p);
  static_cast<void>(shown.print(out));
  out.line(fmt::format("{} of {} hold{}", held, claims_counted(rows),
                       undecided == 0 ? "" : fmt::format(", {} undecided", undecided)));
  out.line();
}

void print_beyond(console& out, const std::vector<reproduce::measured_curve>& curves) {
  if (curves.empty()) return;
  out.line(out.paint(style::heading, "beyond: every lock on every machine"));
  table shown({{.title = "machine", .numeric = false},
               {.title = "writers", .numeric = false},
               {.title = "fastest, at so many ranks", .numeric = false},
               {.title = "ops/s there", .importance = 2},
               {.title = "x slowest", .importance = 2},
               {.title = "ends before", .numeric = false, .importance = 1}});
  for (const reproduce::fastest& f : reproduce::fastest_of(curves))
    shown.add_row({{f.machine},
                   {reproduce::said_of_writers(f.writers)},
                   {f.said()},
                   {scaled(f.ops_s_at_most)},
                   {rounded(f.times_slowest)},
                   {joined(reproduce::ends_of(curves, f.machine, f.writers, false))}});
  static_cast<void>(shown.print(out));
  std::size_t ended = 0;
  for (const reproduce::measured_curve& c : curves) {
    for (const run_json& point : c.points)
      if (point.at("violations") != 0)
        out.line(out.paint(style::bad,
                           fmt::format("{} broke mutual exclusion on {} with {} ranks", c.of.lock,
                                       c.of.machine, point.at("procs").get<int>())));
    ended += !c.ends.empty() && !reproduce::is_k_computer(c.of) ? 1 : 0;
  }
  if (ended > 0)
    out.line(fmt::format("{} of {} end where a run takes more than {}", ended,
                         counted(curves.size(), "curve"), reproduce::most_of_a_point()));
  if (const std::string said = reproduce::said_of_k_computer(curves); !said.empty()) out.line(said);
  out.line();
}

void list_beyond(const std::vector<reproduce::curve>& curves, console& out) {
  if (curves.empty()) return;
  out.line(out.paint(style::heading, "beyond: every lock on every machine"));
  table shown({{.title = "machine", .numeric = false},
               {.title = "workload", .numeric = false},
               {.title = "writers", .numeric = false},
               {.title = "locks"},
               {.title = "ranks up to"}});
  for (std::size_t i = 0; i < curves.size();) {
    const reproduce::curve& c = curves[i];
    std::size_t locks = 0;
    while (i < curves.size() && curves[i].machine == c.machine && curves[i].writers == c.writers)
      ++locks, ++i;
    shown.add_row({{c.machine},
                   {c.workload},
                   {reproduce::said_of_writers(c.writers)},
                   {std::to_string(locks)},
                   {std::to_string(c.runs.back().at("procs").get<int>())}});
  }
  static_cast<void>(shown.print(out));
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

/// "40 s", "3 min".
std::string rough_time(double seconds) {
  return seconds < 90 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

/// A bar with what is done, what is left, and the time that it will take, as far as that can be
/// told: the estimate of a run's work is rough.
std::string describe(const reproduce::standing& now, double seconds) {
  constexpr int width = 20;
  const int filled = static_cast<int>(now.part * width);
  std::string text =
      fmt::format("[{:#<{}}{:.<{}}] {:.0f} %", "", filled, "", width - filled, 100 * now.part);
  constexpr double enough_to_tell = 0.03;
  if (now.part > enough_to_tell)
    text += fmt::format(", about {} left", rough_time(seconds / now.part * (1 - now.part)));
  text += fmt::format("; {} of {}", now.done, counted(now.of, "run"));
  if (now.claims_left > 0) text += fmt::format(", {} open", claims_counted(now.claims_left));
  if (!now.now.empty()) text += ": " + joined(now.now);
  return text;
}

/// The files of a reproduction's pages: one page, or an index and beside it a page for each part.
class page_files {
 public:
  /// `parts` are the papers and beyond; with only one of them there is one page.
  page_files(const std::string& path, const std::vector<std::string>& parts) {
    if (parts.size() == 1) {
      open(parts.front(), path);
      return;
    }
    open("", path);
    const std::filesystem::path index(path);
    beside_.index = index.filename();
    for (const std::string& part : parts) {
      std::filesystem::path beside = index;
      beside.replace_filename(index.stem().string() + '-' + part + index.extension().string());
      open(part, beside);
      beside_.pages.emplace_back(part, beside.filename());
    }
  }

  /// Says the path of each.
  void commit(const std::vector<paper>& papers, const reproduce::reproduction& made,
              const std::function<void(const output_file&)>& say) {
    for (auto& [name, file] : files_) {
      file->commit(page_named(name, papers, made));
      say(*file);
    }
  }

  [[nodiscard]] const std::vector<std::pair<std::string, std::unique_ptr<output_file>>>& all()
      const {
    return files_;
  }

 private:
  void open(const std::string& name, const std::string& path) {
    files_.emplace_back(name, std::make_unique<output_file>("--html", path));
  }

  [[nodiscard]] std::string page_named(const std::string& name, const std::vector<paper>& papers,
                                       const reproduce::reproduction& made) const {
    if (name.empty()) return reproduce::page_of_index(papers, made, beside_);
    if (name == no_paper) return reproduce::page_of_beyond(made, beside_);
    const auto at = std::ranges::find(papers, name, &paper::name);
    return reproduce::page_of_paper(*at, made, beside_);
  }

  std::vector<std::pair<std::string, std::unique_ptr<output_file>>> files_;
  reproduce::pages_beside beside_;
};

/// The parts of a reproduction that have a page.
std::vector<std::string> parts_of(const std::vector<paper>& papers, bool with_beyond) {
  std::vector<std::string> parts;
  for (const paper& p : papers) parts.push_back(p.name);
  if (with_beyond) parts.emplace_back(no_paper);
  return parts;
}

void refuse_source(const output_file& file, const char* option, const std::string& source) {
  std::error_code not_there;
  if (std::filesystem::equivalent(file.target(), source, not_there))
    throw refuse(option, file.path(), "another file than the claims");
}

struct claim_files {
  std::optional<output_file> json;
  std::optional<page_files> html;
  bool json_on_standard_output = false;

  /// `source` is the claim file that is read, or the name of a paper: no file becomes that one.
  claim_files(const arguments& given, const std::vector<std::string>& parts,
              const std::string& source) {
    const auto to = given.one("--json");
    json_on_standard_output = to == "-";
    if (to && !json_on_standard_output) json.emplace("--json", *to);
    if (const auto page = given.one("--html")) {
      html.emplace(*page, parts);
      if (json)
        for (const auto& [name, file] : html->all()) refuse_same(*json, "--json", *file, "--html");
    }
    if (json) refuse_source(*json, "--json", source);
    if (html)
      for (const auto& [name, file] : html->all()) refuse_source(*file, "--html", source);
  }
};

int run_reproduce(const arguments& given, console& out) {
  const std::vector<paper> papers = chosen_papers(given);
  const bool quick = given.has("--quick");
  if (given.has("--list")) {
    for (const char* const name : {"--json", "--html", "--jobs"})
      if (given.has(name)) throw refuse(name, *given.one(name), "not together with --list");
    static_cast<void>(list(papers, quick, out));
    list_beyond(chosen_curves(given), out);
    return 0;
  }
  reproduce::how way;
  if (const auto jobs = given.one("--jobs"))
    way.at_a_time = static_cast<unsigned>(whole_number("--jobs", *jobs, 1, 1024));
  const std::vector<reproduce::curve> curves = chosen_curves(given);
  claim_files files(given, parts_of(papers, !curves.empty()), chosen_name(given));
  reproduce::reproduction made;
  {
    progress_line line;
    way.tell = [&](const reproduce::standing& now) { line.show(describe(now, line.seconds())); };
    made = reproduce::carry_out(
        {.claims = chosen_claims(papers, quick),
         .figures = files.html && !quick ? figures_of(papers) : std::vector<const figure*>{},
         .curves = chosen_curves(given)},
        way);
  }
  const std::string json = reproduce::to_json(made).dump(2) + "\n";
  if (files.json_on_standard_output) {
    out.print(json);
  } else {
    for (const paper& p : papers) print_outcomes(out, p, made.claims);
    print_beyond(out, made.beyond);
  }
  const auto say = [&](const output_file& file) {
    if (!files.json_on_standard_output) out.line("wrote " + file.path());
  };
  if (files.json) {
    files.json->commit(json);
    say(*files.json);
  }
  if (files.html) files.html->commit(papers, made, say);
  return made.holds() ? 0 : 1;
}

glossary paper_glossary() {
  glossary made{"Papers", {}};
  for (const paper& p : reproduce::find_papers(every_paper))
    made.entries.emplace_back(
        p.name, fmt::format("{}; {} on {}", p.title, claims_counted(p.claims.size()), p.machine));
  made.entries.emplace_back(
      no_paper, fmt::format("of no paper: every lock on every machine, up to 65536 ranks, and "
                            "the whole K computer"));
  return made;
}

}  // namespace

command reproduce_command() {
  using enum option::offer;
  return {
      .description =
          {"Runs the locks on simulated models of the machines that the papers used, and compares "
           "each of the papers' statements about speed with the result. A ratio holds within a "
           "factor of 1.5, a value within 30 %, and a direction if it points the same way and is "
           "farther from its bound than three seeds are from each other; otherwise it is "
           "undecided. What is undecided or cannot be measured counts as missed, and the output "
           "says why.",
           "A run that several claims need is carried out once. As many runs go at a time as there "
           "are processors and as memory allows. The exit code is 1 if any claim is missed.",
           "Beyond the papers, every lock is run on every machine with 1, 4, 16, ... ranks. In "
           "these "
           "runs all operations write; reader-writer locks are also run with 0.2 % writing. The "
           "throughputs are data and no claims. Where a run takes more than " +
               reproduce::most_of_a_point() + ", the lock's curve ends, and the output says so."},
      .options = {{.name = "PAPER",
                   .what = "all, the name of a paper, beyond, or a claim file such as "
                           "lab/claims/rma.toml (default: all)",
                   .completes = words,
                   .known = paper_names(),
                   .optional = true},
                  {.name = "--quick",
                   .what = "measure only the claims that take a moment, and few ranks"},
                  {.name = "--list", .what = "list the claims and measure nothing"},
                  {.name = "--jobs",
                   .value = "N",
                   .what = "the number of runs at a time (default: one for each processor)"},
                  {.name = "--json",
                   .value = "FILE|-",
                   .what = "write the results as JSON; - prints that alone, instead of the tables",
                   .completes = files},
                  {.name = "--html",
                   .value = "FILE",
                   .what = "write a page with the claims and a chart for each figure; with "
                           "all, an index, and beside it FILE-rma and so on",
                   .completes = files}},
      .terms = paper_glossary,
      .examples = {{"lockflight reproduce fx100", "measure the claims of one paper"},
                   {"lockflight reproduce --quick",
                    "measure a few claims of each paper, in seconds"},
                   {"lockflight reproduce beyond --html beyond.html",
                    "see which lock is fastest where, up to 65536 ranks"},
                   {"lockflight reproduce all --json claims.json --html claims.html",
                    "measure everything, in a quarter of an hour, and write the pages"}},
      .run = run_reproduce,
  };
}

}  // namespace lockflight::lab
