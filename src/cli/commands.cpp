#include "cli/commands.hpp"

#include <array>

#include "cli/lab.hpp"
#include "lockflight/domain.hpp"
#include "tool/agent_command.hpp"
#include "tool/documents.hpp"

namespace lockflight::cli {
namespace {

// ---- the commands that explain the program explain the lab, too ----

command help() {
  command made = tool::help_command(lockflight_program());
  made.run = [explain = made.run](const arguments& given, console& out) {
    const auto name = given.one("COMMAND");
    if (!name || !passes_on(lockflight_program(), *name)) return explain(given, out);
    return become_lab({*name, help_option().name});
  };
  return made;
}

/// The lab's script comes first: zsh calls the function of a file when the file ends.
command completion() {
  command made = tool::completion_command(lockflight_program());
  made.run = [complete = made.run](const arguments& given, console& out) {
    const std::string shell = shell_of(given);
    // Zsh reads from the first line what a file completes.
    if (shell == "zsh") out.line("#compdef lockflight");
    out.finish();
    run_lab({"completion", shell});  // without a lab there is nothing of it to complete
    return complete(given, out);
  };
  return made;
}

command man() { return tool::man_command(lockflight_program()); }

// ---- the program ----

constexpr std::array commands{
    entry{{"run", "run a command while a named lock is held, as flock(1) does"}, run_command},
    entry{{"who", "show who holds a named lock and who waits for it"}, who_command},
    entry{{"leader", "show who leads an election, and each change of that"}, leader_command},
    entry{{"done", "show until when work is done, and how it has ended"}, done_command},
    entry{{"hold", "hold a named lock for a time, without a command"}, hold_command},
    entry{{"release", "end a hold of 'lockflight hold'"}, release_command},
    entry{{"break", "end the holds of a named lock, whoever holds it"}, break_command},
    entry{{"units", "show which units a semaphore has and who holds them, or change them"},
          units_command},
    entry{{"top", "watch who holds and who waits in a domain"}, top_command},
    entry{tool::agent_listing, tool::agent_command},
    entry{{"domain", "list, show or remove domains of named locks, or forget a lock"},
          domain_command},
    entry{{"locks", "list the locks, their parameters and where they come from"}, locks_command},
    entry{{"topo", "show the machine's levels, and where queues and counters lie"}, topo_command},
    entry{help_listing, help},
    entry{completion_listing, completion},
    entry{man_listing, man},
};

int exit_code_of(const std::exception& thrown) {
  using enum domain_error::reason;
  const auto* const e = dynamic_cast<const domain_error*>(&thrown);
  if (e == nullptr) return 0;
  const bool is_of_usage =
      e->why == invalid || e->why == missing || e->why == disagrees || e->why == held;
  return is_of_usage ? 2 : 3;
}

}  // namespace

const about& lockflight_program() {
  static const about program{
      .name = "lockflight",
      .summary =
          "locks for memory that is reached over a network, and named locks for the "
          "processes of one machine or of a cluster",
      .commands = commands,
      .passed_on = lab_commands::all,
      .passed_on_to = lab_name,
      .passed_on_title = "Commands that measure and check locks",
      .exit_code_of = exit_code_of,
  };
  return program;
}

}  // namespace lockflight::cli
