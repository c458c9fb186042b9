#include "cli/commands.hpp"
#include "cli/lab.hpp"
#include "cli/lock_table.hpp"
#include "tool/agent_command.hpp"
#include "tool/standard_streams.hpp"

using namespace lockflight;

int main(int argc, char** argv) {
  tool::fill_standard_streams();
  cli::build_in(LOCKFLIGHT_FABRIC);
  if (tool::passes_on(cli::lockflight_program(), tool::named_command(argc, argv)))
    return cli::become_lab(argv);
  if (tool::named_command(argc, argv) == tool::agent_listing.name) return cli::become_agent(argv);
  return tool::run(cli::lockflight_program(), argc, argv);
}
