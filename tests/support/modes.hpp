// The ways in which a test binary runs its tests, one way after the other: with ranks that are
// processes, with ranks that are threads, with each policy of waiting, on several simulated
// machines. They differ at run time only, so that what is compiled for one is there for all.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace lockflight::test {

/// What a fabric's type does not say.
struct mode {
  const char* name;
  bool threads = false;          // shm: ranks are threads of this process
  const char* waiting = "auto";  // shm: how ranks wait
  bool shared_nodes = false;     // mpi: all ranks of this machine use CPU instructions
  bool many_core = false;        // sim: uncached memory behind controllers
  bool full_links = false;       // sim: links fill up, and routers take turns
  int most_ranks = std::numeric_limits<int>::max();   // larger machines are skipped
  int most_rounds = std::numeric_limits<int>::max();  // tests repeat themselves no oftener
};

namespace detail {
[[nodiscard]] inline std::vector<mode>& offered() {
  static std::vector<mode> all;
  return all;
}
inline mode in_force{.name = "as each test says"};
}  // namespace detail

/// Adds modes to those of this binary, where they are missing. For the initializer of a constant at
/// namespace scope: `const bool modes = run_in(these);`.
inline bool run_in(std::span<const mode> modes) {
  std::vector<mode>& all = detail::offered();
  for (const mode& each : modes) {
    const auto is_it = [&](const mode& m) { return std::string_view(m.name) == each.name; };
    if (std::none_of(all.begin(), all.end(), is_it)) all.push_back(each);
  }
  return true;
}

/// The mode that tests run in now.
[[nodiscard]] inline const mode& mode_now() { return detail::in_force; }

/// Instead of RUN_ALL_TESTS(): runs them in each mode of the binary, or in the one that
/// LOCKFLIGHT_TEST_MODE names, and says which one it is if `says`. A binary without modes runs its
/// tests once.
[[nodiscard]] int run_all_tests_in_all_modes(bool says = true);

}  // namespace lockflight::test
