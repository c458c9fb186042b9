// From the command line to a command and its arguments.
#pragma once

#include <optional>

#include "tool/command.hpp"
#include "tool/tool.hpp"

namespace lockflight::tool {

/// A command and its arguments.
struct invocation {
  enum class kind { run, help, version };
  kind wants = kind::run;
  std::optional<command> of;  ///< none: the bare program
  arguments given{{}};
};

/// Throws usage_error. The line names no command that the program passes on.
[[nodiscard]] invocation parse(const about& program, int argc, const char* const* argv);

}  // namespace lockflight::tool
