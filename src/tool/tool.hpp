// A program without its main(): it parses its line, runs a command, and returns an exit code.
#pragma once

#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tool/command.hpp"

namespace lockflight::tool {

/// The exit code when a process, a file or another host has failed, and not the user's request.
constexpr int environment_failed = 3;

/// A variable of the environment.
struct environment_variable {
  std::string_view name;
  std::string_view what;  ///< a sentence without its final stop
};

/// The differences between the two programs.
struct about {
  std::string_view name;     ///< "lockflight"
  std::string_view summary;  ///< a sentence about the program, without a final stop
  std::span<const entry> commands;
  /// Commands that it passes on to another program, which has their options and their help.
  std::span<const listing> passed_on = {};
  std::string_view passed_on_to = {};     ///< that program
  std::string_view passed_on_title = {};  ///< the heading of these commands in help
  /// Variables of the environment that this program reads, for the manual page.
  std::span<const environment_variable> environment = {};
  /// The exit code for an exception that a command throws and that only this program knows; 0 if it
  /// does not know it either.
  int (*exit_code_of)(const std::exception& thrown) = nullptr;
  /// True if this process reports errors; null if it does. One process of a launch reports them.
  bool (*speaks)() = nullptr;
};

/// Everything that may follow the program's name, in the order in which help lists it.
[[nodiscard]] std::vector<std::string> command_names(const about& program);

/// The entry of that name; null if there is none.
[[nodiscard]] const entry* find_command(const about& program, std::string_view name);
/// True if the program passes the command of that name on.
[[nodiscard]] bool passes_on(const about& program, std::string_view name);

/// The command that a line names: its first word without a dash in front. Empty if it names none.
[[nodiscard]] std::string_view named_command(int argc, const char* const* argv);

/// Prints at most one line on standard error, unless a terminal shows progress there. The line
/// names no command that is passed on.
[[nodiscard]] int run(const about& program, int argc, const char* const* argv);

/// The options that every command has, and those of the bare program.
[[nodiscard]] const option& help_option();
[[nodiscard]] const option& version_option();

/// The exit codes of all commands that have none of their own.
[[nodiscard]] const std::vector<exit_status>& exit_statuses();

}  // namespace lockflight::tool
