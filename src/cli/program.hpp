// The program without main(): parses, runs, and returns an exit code.
#pragma once

namespace lockflight::cli {

/// Prints at most one line on standard error, unless a terminal shows progress there.
[[nodiscard]] int run_program(int argc, const char* const* argv);

}  // namespace lockflight::cli
