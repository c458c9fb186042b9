// The programs beside this one: lockflight-lab has the commands which measure and check locks, and
// lockflight-agent is the agent of a host in a cluster.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockflight::cli {

inline constexpr std::string_view lab_name = "lockflight-lab";

/// This process becomes the lab, with the arguments of main(). If there is no lab, returns the exit
/// code after a line on standard error.
int become_lab(char* const* argv);
/// As become_lab, with these words as the arguments.
int become_lab(std::vector<std::string> words);
/// As become_lab, for lockflight-agent.
int become_agent(char* const* argv);

/// Runs the lab, if it is there, and waits for its end. The lab's output comes after the earlier
/// output of this program.
void run_lab(const std::vector<std::string>& words);

}  // namespace lockflight::cli
