// The commands of lockflight-lab by name. Both programs list them: the lab has them, and lockflight
// passes their lines on to it.
#pragma once

#include <array>
#include <string_view>

namespace lockflight::tool {

/// A command in a list of commands.
struct listing {
  std::string_view name;
  std::string_view summary;  ///< one line, without a final stop
};

namespace lab_commands {

inline constexpr listing bench{"bench", "compare locks by running them"};
inline constexpr listing tune{"tune", "find a lock's parameters for a workload by measuring"};
inline constexpr listing check{"check", "search a lock's schedules for one that breaks a rule"};
inline constexpr listing reproduce{"reproduce",
                                   "measure what the papers claim about speed, claim by claim"};
inline constexpr listing grid{
    "grid", "compare flight and flight-rw with all other locks on simulated machines"};
inline constexpr listing report{"report", "make a page with charts from a bench's JSON"};
inline constexpr listing doctor{"doctor",
                                "test a network's library, or find the drop-in for an MPI program"};

/// In the order in which help lists them.
inline constexpr std::array all{bench, tune, check, reproduce, grid, report, doctor};

}  // namespace lab_commands

}  // namespace lockflight::tool
