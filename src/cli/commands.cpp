#include "cli/command.hpp"

namespace lockflight::cli {

const std::vector<command>& commands() {
  static const std::vector<command> all{
      bench_command(), tune_command(), check_command(),  reproduce_command(),  grid_command(),
      locks_command(), topo_command(), report_command(), doctor_command(),     run_command(),
      who_command(),   top_command(),  domain_command(), completion_command(), man_command(),
  };
  return all;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const command& c : commands()) names.push_back(c.name);
  return names;
}

const option& help_option() {
  static const option help{.name = "--help", .shorthand = "-h", .what = "print this help and exit"};
  return help;
}

const option& version_option() {
  static const option version{.name = "--version", .what = "print the version and exit"};
  return version;
}

const std::vector<exit_status>& exit_statuses() {
  static const std::vector<exit_status> all{
      {0, "fine"},
      {1, "what was checked does not hold, such as mutual exclusion"},
      {2, "bad usage or input; one line on standard error says what is accepted"},
      {3, "the environment failed: a rank died, memory or a file was refused"},
      {130, "interrupted (Ctrl-C)"},
  };
  return all;
}

}  // namespace lockflight::cli
