// lockflight bench: compares locks by running them.
#include "lab/bench/bench.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "lab/bench/plan/launch.hpp"
#include "lab/program/bench_request.hpp"
#include "lab/program/bench_table.hpp"
#include "lab/program/commands.hpp"
#include "lab/program/open_files.hpp"
#include "lab/program/output_file.hpp"
#include "lab/program/progress.hpp"
#include "lab/report/report.hpp"
#include "tool/console.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace lockflight::lab {
namespace {

/// The output files of a comparison. Opened before it starts, so that it does not run in vain.
struct outputs {
  std::optional<output_file> json;
  std::optional<output_file> html;
  std::optional<output_file> trace;
  bool json_on_standard_output = false;

  void open_all(const arguments& given) {
    json_on_standard_output = given.one("--json") == "-";
    if (!json_on_standard_output) open(json, given, "--json");
    open(html, given, "--html");
    open(trace, given, "--trace");
    refuse_same(json, "--json", html, "--html");
    refuse_same(json, "--json", trace, "--trace");
    refuse_same(html, "--html", trace, "--trace");
  }

 private:
  static void open(std::optional<output_file>& file, const arguments& given, const char* name) {
    if (const auto path = given.one(name)) file.emplace(name, *path);
  }
};

std::string describe(const bench::progress& p, double seconds) {
  std::string out =
      fmt::format("[{}/{}] {}, {}: {:.0f} %", p.run + 1, p.runs, p.lock,
                  counted(static_cast<std::size_t>(p.procs), "rank"), 100 * p.fraction);
  const double done = (static_cast<double>(p.run) + p.fraction) / static_cast<double>(p.runs);
  constexpr double enough_to_guess = 0.02;
  if (done < enough_to_guess) return out;
  const double left = std::ceil(seconds * (1 - done) / done);
  return out + fmt::format(", about {:.0f} s left", left);
}

void write_files(outputs& to, const nlohmann::json& result, console& out) {
  const auto say = [&](const output_file& file) {
    if (!to.json_on_standard_output) out.line("wrote " + file.path());
  };
  if (to.json) {
    to.json->commit(result.dump(2) + "\n");
    say(*to.json);
  }
  if (to.html) {
    to.html->commit(report::render_html(result, bench::own_locks()));
    say(*to.html);
  }
  if (to.trace) {
    to.trace->commit();
    say(*to.trace);
  }
}

int run_bench(const arguments& given, console& out) {
  bench::request request = bench_request(given);
  outputs files;
  open_files(bench::launch_of(request.fabric), [&] { files.open_all(given); });
  if (files.trace) request.trace = files.trace->temporary();

  nlohmann::json result;
  std::string remark;
  {
    progress_line line;
    result = bench::run(
        request, [&](const bench::progress& p) { line.show(describe(p, line.seconds())); },
        [&](const std::string& said) { remark = said; });
  }
  if (files.json_on_standard_output)
    out.line(result.dump(2));
  else
    print_bench(out, result);
  write_files(files, result, out);
  if (!remark.empty())
    std::fputs(
        fmt::format("lockflight bench: --trace {}: {}\n", files.trace->path(), remark).c_str(),
        stderr);
  const std::string broken = violations_in(result);
  if (broken.empty()) return 0;
  out.finish();  // the table comes before the messages about it
  std::fputs(fmt::format("lockflight bench: {}\n", broken).c_str(), stderr);
  return 1;
}

std::vector<option> bench_options() {
  using enum option::offer;
  std::vector<option> all = bench_request_options();
  all.push_back(
      {.name = "--trace",
       .value = "FILE",
       .what =
           "write a Chrome trace of when each rank waited and held, about 100 MB at most, for the "
           "viewer Perfetto (ui.perfetto.dev)",
       .completes = files});
  all.push_back({.name = "--json",
                 .value = "FILE|-",
                 .what = "write all results as JSON; - prints that alone, instead of the table",
                 .completes = files});
  all.push_back({.name = "--html",
                 .value = "FILE",
                 .what = "write a page with charts, which opens offline",
                 .completes = files});
  return all;
}

glossary workload_glossary() {
  glossary made{"Workloads", {}};
  for (const auto& row : bench::workloads()) made.entries.emplace_back(row.name, row.what);
  return made;
}

}  // namespace

command bench_command() {
  return {
      .description =
          {"Runs a workload with each lock at each number of ranks, and watches that mutual "
           "exclusion holds. It prints one line for each run: operations a second, latency, "
           "network operations, how often the lock was handed on at each level of the machine, "
           "Jain's index of fairness (1 is even), the longest wait, and violations of mutual "
           "exclusion.",
           "Without options it compares all locks under the workload ecsb with 1, 2, 4, ... ranks "
           "up to the number of cores. Each run takes one second, and 0.2 % of the operations "
           "write.",
           "A rank that is killed ends the comparison, with one exception: with dlm-server on "
           "shm, without --trace, the others go on if the rank neither held the lock nor serves "
           "one, and the results name the lost rank."},
      .options = bench_options(),
      .terms = workload_glossary,
      .examples =
          {{"lockflight bench", "compare all locks on this machine"},
           {"lockflight bench --lock d-mcs,rma-mcs --levels 2x4 --seconds 0.5",
            "compare two mutexes with 8 ranks on 2 nodes"},
           {"lockflight bench --lock rma-rw --procs 4 --set T_R=64 --writers 0.25 --json runs.json",
            "set a parameter, let a quarter of the operations write, and save the results"},
           {"lockflight bench --lock all --html report.html", "write a page with charts"},
           {"lockflight bench --fabric sim --machine piz-daint --procs 64,1024",
            "run on a simulated cluster, in virtual time"}},
      .run = run_bench,
  };
}

}  // namespace lockflight::lab
