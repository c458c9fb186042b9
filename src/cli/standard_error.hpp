// Messages of `lockflight run` and of other commands on standard error and elsewhere. The run may
// hold the lock then, or its time may be over, so it waits for no reader: neither for that of a
// pipe that is full, nor for a terminal that Ctrl-S has stopped.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace lockflight::cli {

/// True if standard error takes a line now.
[[nodiscard]] bool takes_a_line();

/// Writes the text as it is, as far as the descriptor takes it within that time. False if not all
/// was written. A reader that is gone sends this process no SIGPIPE.
bool write_within(int to, std::string_view text, std::chrono::milliseconds within);

/// The command in whose name say() speaks; `run` at the beginning.
void speak_as(const char* command);

/// Writes "lockflight COMMAND: LINE", without control characters. If nobody has made room for it
/// after a tenth of a second, the line is lost.
void say(const std::string& line);

}  // namespace lockflight::cli
