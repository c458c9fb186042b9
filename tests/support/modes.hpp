// The ways in which a test binary runs its tests, one way after the other: with ranks that are
// processes, with ranks that are threads, with each policy of waiting, on several simulated
// machines. They differ at run time only, so one compilation serves all.
#pragma once

#include <limits>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

namespace lockflight::test {

/// The properties of a run that a fabric's type does not have.
struct mode {
  const char* name;
  bool threads = false;          // shm: ranks are threads of this process
  const char* waiting = "auto";  // shm: how ranks wait
  bool shared_nodes = false;     // mpi: all ranks of this machine use CPU instructions
  bool many_core = false;        // sim: uncached memory behind controllers
  bool full_links = false;       // sim: links have a capacity, and routers serve inputs round robin
  int most_ranks = std::numeric_limits<int>::max();   // larger machines are skipped
  int most_rounds = std::numeric_limits<int>::max();  // tests repeat themselves no oftener
};

namespace detail {
/// A mode, and the file whose tests want it.
struct offer {
  mode what;
  std::string_view file;
};
[[nodiscard]] inline std::vector<offer>& offered() {
  static std::vector<offer> all;
  return all;
}
inline mode in_force{.name = "as each test says"};
}  // namespace detail

/// Adds modes for the tests of the calling file. For the initializer of a constant at
/// namespace scope: `const bool modes = run_in(these);`.
inline bool run_in(std::span<const mode> modes,
                   std::source_location where = std::source_location::current()) {
  for (const mode& each : modes) detail::offered().push_back({each, where.file_name()});
  return true;
}

/// The mode that tests run in now.
[[nodiscard]] inline const mode& mode_now() { return detail::in_force; }

/// Instead of RUN_ALL_TESTS(): runs the tests in each mode that was added, or in the one that
/// LOCKFLIGHT_TEST_MODE names, and says which one it is if `says`. Without modes they run once.
[[nodiscard]] int run_all_tests_in_all_modes(bool says = true);

/// The same for the tests of one file, in the modes of that file: several files may be one binary.
/// `file` is its name without folders and extension. 2 if it has no tests here.
[[nodiscard]] int run_tests_of(std::string_view file);

}  // namespace lockflight::test
