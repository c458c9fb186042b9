// From the arguments of `lockflight bench` to a request to the benchmark.
#pragma once

#include "lab/bench/bench.hpp"
#include "lab/program/commands.hpp"

namespace lockflight::lab {

/// The options that make the request, for help, manual and completion.
[[nodiscard]] std::vector<option> bench_request_options();

/// Throws usage_error or bench::bad_request unless the benchmark could carry it out.
[[nodiscard]] bench::request bench_request(const arguments& given);

}  // namespace lockflight::lab
