// main() of lockflight-agent, the agent of a host in a cluster. Users call it `lockflight agent`.
#include <csignal>

#include "agent/process/short_slices.hpp"
#include "agent/program/settings.hpp"
#include "agent/program/show_status.hpp"
#include "tool/agent_command.hpp"
#include "tool/standard_streams.hpp"
#include "tool/tool.hpp"
#include "tool/usage.hpp"

namespace lockflight::agents {
namespace {

int run_agent(const tool::arguments& given) {
  const cluster::agent_options options = settings_from(given);
  const cluster::journal log(options.domain);
  std::signal(SIGPIPE, SIG_IGN);
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

int run(const tool::arguments& given, tool::console& out) {
  const std::string action = given.one("ACTION").value_or("run");
  if (action == "status") return show_status(domain_from(given), given.has("--json"), out);
  if (action != "run" && action != "consistent")
    throw tool::unknown_name("ACTION", action, {"run", "status", "consistent"});
  if (given.has("--json")) throw tool::refuse("--json", "", "with status");
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
