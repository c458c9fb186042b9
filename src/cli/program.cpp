#include "cli/program.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "bench/plan/launch.hpp"
#include "cli/cleanup.hpp"
#include "cli/console.hpp"
#include "cli/help.hpp"
#include "cli/parse.hpp"
#include "cli/standard_descriptors.hpp"
#include "cli/text.hpp"
#include "cli/version.hpp"
#include "lockflight/domain.hpp"
#include "report/report.hpp"

namespace lockflight::cli {
namespace {

constexpr int bad_usage = 2;
constexpr int environment_failed = 3;

int say(const std::string& who, std::string_view what, int code) {
  // All processes of a launch find an error in the command line; one reports it.
  if (bench::speaks()) std::fputs(fmt::format("{}: {}\n", who, one_line(what)).c_str(), stderr);
  return code;
}

/// The name in error messages: "lockflight bench", if the command is known.
std::string name_of(int argc, const char* const* argv) {
  for (const command& c : commands())
    if (argc > 1 && c.name == argv[1]) return "lockflight " + c.name;
  return "lockflight";
}

bool is_of_usage(domain_error::reason why) {
  using enum domain_error::reason;
  return why == invalid || why == missing || why == disagrees || why == held;
}

int carry_out(const invocation& asked, console& out) {
  switch (asked.wants) {
    case invocation::kind::help:
      out.print(asked.of == nullptr ? program_help() : command_help(*asked.of));
      return 0;
    case invocation::kind::version:
      out.line(fmt::format("lockflight {}", version()));
      return 0;
    case invocation::kind::run:
      break;
  }
  return asked.of->run(asked.given, out);
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  fill_closed_descriptors();
  clean_up_when_interrupted();
  const std::string who = name_of(argc, argv);
  try {
    const invocation asked = parse(argc, argv);
    console out;
    const int code = carry_out(asked, out);
    out.finish();
    return code;
  } catch (const std::invalid_argument& e) {  // usage_error, bench::bad_request, a bad shm::config
    return say(who, e.what(), bad_usage);
  } catch (const report::bad_input& e) {
    return say(who, e.what(), bad_usage);
  } catch (const domain_error& e) {
    return say(who, e.what(), is_of_usage(e.why) ? bad_usage : environment_failed);
  } catch (const std::bad_alloc&) {
    return say(who, "there is not enough memory", environment_failed);
  } catch (const std::exception& e) {  // shm::rank_failed, std::system_error, hwloc
    return say(who, e.what(), environment_failed);
  }
}

}  // namespace lockflight::cli
