// lockflight report: a page out of a bench's JSON.
#include "lab/report/report.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "lab/bench/bench.hpp"
#include "lab/program/commands.hpp"
#include "lab/program/output_file.hpp"
#include "tool/console.hpp"
#include "tool/usage.hpp"

namespace lockflight::lab {
namespace {

/// The report's messages name the place in the file; this adds the argument.
usage_error explain(const std::string& path, std::string message) {
  if (message.starts_with(path + ": ")) message.erase(0, path.size() + 2);
  if (message.find("accepted") == std::string::npos)
    message += "; accepted: the JSON of 'lockflight bench --json'";
  return usage_error(fmt::format("FILE.json {}: {}", shown(path), message));
}

std::string page_from(const std::string& path) {
  try {
    return report::render_html(report::parse_file(path), bench::own_locks());
  } catch (const report::bad_input& e) {
    throw explain(path, e.what());
  }
}

int run_report(const arguments& given, console& out) {
  const auto input = given.one("FILE.json");
  const auto output = given.one("--output");
  if (!input) throw refuse("FILE.json", "", "the JSON of 'lockflight bench --json'");
  if (!output) throw refuse("--output", "", "-o FILE.html, the page to write");
  std::error_code none;
  if (std::filesystem::equivalent(*input, *output, none))
    throw refuse("--output", *output, "another file than FILE.json");
  output_file page("--output", *output);
  page.commit(page_from(*input));
  out.line("wrote " + page.path());
  return 0;
}

}  // namespace

command report_command() {
  return {
      .description = {"Makes one self-contained HTML page, which opens offline, from what "
                      "'lockflight bench --json' wrote."},
      .options = {{.name = "FILE.json",
                   .what = "the file that 'lockflight bench --json FILE' wrote",
                   .completes = option::offer::files},
                  {.name = "--output",
                   .shorthand = "-o",
                   .value = "FILE.html",
                   .what = "the page to write; it has to be given",
                   .completes = option::offer::files}},
      .examples = {{"lockflight report runs.json -o runs.html", "make the page for runs.json"}},
      .run = run_report,
  };
}

}  // namespace lockflight::lab
