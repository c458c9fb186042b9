// main() of lockflight-agent, the agent of a host in a cluster. Users call it `lockflight agent`.
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <string>
#include <thread>

#include "names/agent/process/recovery.hpp"
#include "names/agent/process/short_slices.hpp"
#include "names/agent/program/settings.hpp"
#include "names/agent/program/show_status.hpp"
#include "tool/agent_command.hpp"
#include "tool/standard_streams.hpp"
#include "tool/tool.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::agents {
namespace {

/// Writes to a connection that was closed fail then, and do not end the program.
void ignore_closed_connections() { std::signal(SIGPIPE, SIG_IGN); }

int run_agent(const tool::arguments& given) {
  const cluster::agent_options options = settings_from(given);
  const cluster::journal log(options.domain);
  ignore_closed_connections();
  static_cast<void>(cluster::ask_for_short_slices());
  try {
    cluster::agent_process(options, log).run();
  } catch (const tool::usage_error&) {
    throw;
  } catch (const cluster::told_to_end& e) {
    log.info("ended", e.what());
  } catch (const std::exception& e) {
    log.fail("ended", e.what());
    return 3;
  }
  return 0;
}

/// An operator's "yes" on the terminal.
bool agrees() {
  std::cerr << "go on? yes or no: " << std::flush;
  std::string line;
  return std::getline(std::cin, line) && line == "yes";
}

int recover(const tool::arguments& given, tool::console& out) {
  const cluster::agent_options options = settings_from(given);
  const auto above = static_cast<cluster::epoch_number>(
      tool::whole_number("--above", given.one("--above").value_or("0"), 0, cluster::last_epoch));
  ignore_closed_connections();
  try {
    cluster::recovery what(options, above);
    for (const std::string& line : what.plan()) std::cerr << line << '\n';
    if (given.has("--yes") && !what.is_needed() && above == 0)
      throw tool::usage_error(
          "--yes: nothing has to be recovered (accepted: with --above N, to recover all the same)");
    if (!given.has("--yes") && isatty(STDIN_FILENO) == 0)
      throw tool::usage_error(
          "recover asks before it acts, and standard input is no terminal: say --yes");
    if (!given.has("--yes") && !agrees()) return 1;
    std::this_thread::sleep_for(what.waits_for());
    if (const auto is_not_noted = what.carry_out()) {
      std::cerr << "lockflight: recovered, but " << *is_not_noted
                << "; start the agents of all hosts\n";
      return 3;
    }
  } catch (const tool::usage_error&) {
    throw;
  } catch (const std::exception& e) {
    std::cerr << "lockflight: " << e.what() << '\n';
    return 3;
  }
  out.line("recovered: start the agents of all hosts");
  return 0;
}

int run(const tool::arguments& given, tool::console& out) {
  const std::string action = given.one("ACTION").value_or("run");
  for (const char* const option : {"--yes", "--above"})
    if (action != "recover" && given.has(option)) throw tool::refuse(option, "", "with recover");
  if (action == "status") return show_status(domain_from(given), given.has("--json"), out);
  if (action != "run" && action != "consistent" && action != "recover")
    throw tool::unknown_name("ACTION", action, {"run", "status", "consistent", "recover"});
  if (given.has("--json")) throw tool::refuse("--json", "", "with status");
  if (action == "recover") return recover(given, out);
  return action == "run" ? run_agent(given) : end_doubt(domain_from(given), out);
}

tool::command command() {
  tool::command made = tool::agent_command();
  made.run = run;
  return made;
}

constexpr std::array commands{tool::entry{tool::agent_listing, command}};

int exit_code_of(const std::exception& thrown) {
  const auto* const e = dynamic_cast<const domain_error*>(&thrown);
  if (e == nullptr) return 0;
  return e->why == domain_error::reason::missing || e->why == domain_error::reason::invalid ? 2 : 3;
}

}  // namespace
}  // namespace lockflight::agents

int main(int argc, char** argv) {
  using namespace lockflight;
  tool::fill_standard_streams();
  const tool::about program{.name = "lockflight",
                            .summary = "the agent of a host in a cluster",
                            .commands = agents::commands,
                            .exit_code_of = agents::exit_code_of};
  return tool::run(program, argc, argv);
}
