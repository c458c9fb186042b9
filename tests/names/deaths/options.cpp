#include "tests/names/deaths/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "tests/names/deaths/locks.hpp"
#include "tests/names/deaths/shared_state.hpp"

namespace lockflight::test {

std::vector<int> campaign_options::numbers() const {
  std::vector<int> found;
  for (int i = 0; i < lock_count(); ++i)
    if (kinds.empty() || std::ranges::count(kinds, kind_of(i)) > 0) found.push_back(i);
  return found;
}

std::optional<int> read_options(int argc, char** argv, campaign_options& into) {
  CLI::App app{"Kills processes that lock, and watches what the locks guard"};
  app.add_option("--kills", into.kills, "how many processes to kill")
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--processes", into.processes, "how many lock at the same time")
      ->check(CLI::Range(2, most_processes));
  app.add_option("--seed", into.seed, "of the moments and of what workers do");
  app.add_option("--most-wait", into.most_wait_s, "the longest wait in seconds")
      ->check(CLI::PositiveNumber);
  app.add_flag("--users", into.users, "workers of two users, in a domain of their group (root)");
  app.add_flag("--spaces", into.spaces,
               "half of them in namespaces of processes of their own (root)");
  app.add_flag("--removals", into.removals, "somebody tries to remove the domain, too");
  app.add_flag("--images", into.images,
               "workers become new images by exec, make children, and (root) enter namespaces");
  app.add_option("--lock", into.kinds, "use this one; may be given again")
      ->check(CLI::IsMember(kinds()));
  app.add_flag("--quiet", into.quiet, "no line each second");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  return std::nullopt;
}

}  // namespace lockflight::test
