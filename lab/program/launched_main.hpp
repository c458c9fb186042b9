// main() of the labs that can join a launch.
#pragma once

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string_view>

#include "lab/bench/plan/launch.hpp"
#include "lab/program/commands.hpp"
#include "lab/program/named_fabric.hpp"
#include "lab/program/same_options.hpp"
#include "tool/tool.hpp"

namespace lockflight::lab {

/// True if doctor is asked about a program, which needs no launch.
[[nodiscard]] inline bool names_program(int argc, const char* const* argv) {
  return std::any_of(argv, argv + argc, [](std::string_view word) {
    return word == "--program" || word.starts_with("--program=");
  });
}

/// The lab, which can also join the launch.
inline int run_launched_lab(bench::launch& its, int argc, char** argv) {
  bench::build_in(its);
  // This comes before an error can be reported, so that only rank 0 reports it. A program that asks
  // for another fabric needs no launcher.
  const bool doctor = tool::named_command(argc, argv) == "doctor" && !names_program(argc, argv);
  if (doctor || named_fabric(argc, argv) == its.fabric()) {
    const auto refused = [&](const std::exception& e, int code) {
      if (its.speaks()) std::fprintf(stderr, "lockflight: %s\n", e.what());
      return code;
    };
    try {
      its.start();
      require_same_options(its, argc, argv);
    } catch (const std::invalid_argument& e) {
      return refused(e, 2);
    } catch (const std::exception& e) {
      return refused(e, 3);
    }
    // Other ranks can still report on standard error why they failed.
    if (its.rank() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr) return 3;
  }
  return run_lab(argc, argv);
}

}  // namespace lockflight::lab
