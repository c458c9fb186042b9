// What `lockflight run` says on standard error. It may hold the lock then, or its time may be over,
// so it waits for no reader: neither for that of a pipe that is full, nor for a terminal that
// Ctrl-S has stopped.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace lockflight::cli {

/// Whether standard error takes a line now, or within that time.
[[nodiscard]] bool takes_a_line(std::chrono::milliseconds within = std::chrono::milliseconds(0));

/// Writes the text as it is, as far as standard error takes it within that time.
void write_within(std::string_view text, std::chrono::milliseconds within);

/// Writes "lockflight run: LINE", without control characters. If nobody has made room for it after
/// a tenth of a second, the line is lost.
void say(const std::string& line);

}  // namespace lockflight::cli
