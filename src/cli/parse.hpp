// From the command line to a command and its arguments.
#pragma once

#include "cli/command.hpp"

namespace lockflight::cli {

/// A command and its arguments.
struct invocation {
  enum class kind { run, help, version };
  kind wants = kind::run;
  const command* of = nullptr;  ///< none: the bare program
  arguments given{{}};
};

/// Throws usage_error.
[[nodiscard]] invocation parse(int argc, const char* const* argv);

}  // namespace lockflight::cli
