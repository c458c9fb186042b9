// The name by which people know a command under a lock.
#pragma once

#include <string>
#include <vector>

namespace lockflight::cli {

/// The name of a command's program, without its folders. If the command is a run itself, the
/// program is that of the innermost COMMAND.
[[nodiscard]] std::string program_of(std::vector<std::string> words);

}  // namespace lockflight::cli
