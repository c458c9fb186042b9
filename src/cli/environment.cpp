#include "cli/environment.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "base/clock.hpp"
#include "base/joined.hpp"
#include "base/number.hpp"
#include "base/numbers.hpp"
#include "cli/named.hpp"
#include "cli/unit_options.hpp"

namespace lockflight::cli {
namespace {

constexpr const char* inside = "LOCKFLIGHT_INSIDE";

/// Sets a variable. An empty value removes it.
void set_variable(const char* name, const std::string& value) {
  if (value.empty())
    unsetenv(name);
  else
    setenv(name, value.c_str(), 1);
}

std::string variable(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? "" : value;
}

/// The identity of the domain's file. It distinguishes the file from that of any other domain, also
/// from one of the same name that is made later. Empty if the file has no path any more.
std::string identity_of(const domain& in) {
  struct stat s {};
  if (stat(in.path().c_str(), &s) != 0) return "";
  return fmt::format("{:x}:{:x}", s.st_dev, s.st_ino);
}

struct enclosing_hold {
  std::string domain;
  int pid = 0;
  std::uint64_t since_ns = 0;
  std::string name;
};

std::string line_of(const enclosing_hold& its) {
  return fmt::format("{} {} {} {}", its.domain, its.pid, its.since_ns, its.name);
}

/// The hold that a line describes; nothing if it is no such line.
std::optional<enclosing_hold> hold_from(std::string_view line) {
  const auto field = [&line] {
    const std::string_view taken = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(taken.size() + 1, line.size()));
    return taken;
  };
  enclosing_hold its;
  its.domain = field();
  const auto pid = read_number<int>(field());
  const auto since = read_number<std::uint64_t>(field());
  if (its.domain.empty() || !pid || !since || line.empty()) return std::nullopt;
  its.pid = *pid;
  its.since_ns = *since;
  its.name = line;
  return its;
}

std::vector<enclosing_hold> holds_of_enclosing_runs() {
  std::vector<enclosing_hold> all;
  const std::string lines = variable(inside);
  for (std::string_view rest = lines; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (auto its = hold_from(line)) all.push_back(*std::move(its));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return all;
}

/// True if the user is that run, and its COMMAND still runs or has left processes that keep the
/// lock. A run that holds only because of --at-least does not wait. A later process with the run's
/// number has held for a shorter time. `before_ns` is a moment before the users were read.
bool is_that_run(const lock_user& user, const enclosing_hold& its, std::uint64_t before_ns) {
  constexpr std::uint64_t tolerance_ns = 10'000'000;
  return !user.waits() && user.host.empty() && user.pid == its.pid && user.guarded_pid != 0 &&
         before_ns <= its.since_ns + user.for_ns + tolerance_ns;
}

/// The number of units that a run takes; 1 of a lock.
std::size_t taken(const std::optional<units>& of_semaphore) {
  return of_semaphore ? static_cast<std::size_t>(of_semaphore->take) : 1;
}

/// The number of units that there are, which may have been set to another one than the run gives.
std::size_t existing(const domain& in, const std::string& name,
                     const std::optional<units>& of_semaphore) {
  if (!of_semaphore) return 1;
  for (const domain_lock& each : in.locks())
    if (each.name == name && each.units > 0) return static_cast<std::size_t>(each.units);
  return static_cast<std::size_t>(count_of(*of_semaphore));
}

}  // namespace

bool is_inside_of_a_run() { return !variable(inside).empty(); }

void set_environment(const domain& in, const named_handle& held, std::uint64_t since_ns) {
  const bool is_alone = held.held() == mode::exclusive;
  std::vector<std::string> tokens;
  for (const std::uint64_t each : held.tokens()) tokens.push_back(std::to_string(each));
  // Each name has a line, since no name has a new line.
  set_variable("LOCKFLIGHT_LOCK", joined(held.names(), "\n"));
  // A run of a lock, inside of one that holds units, has these as well: they are its devices.
  if (held.units_of() > 0 || !is_inside_of_a_run())
    set_variable("LOCKFLIGHT_UNIT", numbers_text(held.units_held()));
  set_variable("LOCKFLIGHT_TOKEN", is_alone ? joined(tokens, "\n") : "");
  set_variable("LOCKFLIGHT_OWNER_DIED", held.owner_died() ? "1" : "");
  const std::string domain = identity_of(in);
  std::vector<std::string> ours;
  for (const std::string& name : held.names())
    if (!domain.empty()) ours.push_back(line_of({domain, getpid(), since_ns, name}));
  const std::string lines = joined(ours, "\n");
  const std::string around = variable(inside);
  // A repair before COMMAND has them already.
  if (!around.ends_with(lines))
    set_variable(inside, around.empty() ? lines : around + "\n" + lines);
}

std::optional<enclosing_run> run_that_excludes(const domain& in,
                                               const std::vector<std::string>& names, bool shared,
                                               std::optional<units> of_semaphore) {
  const std::vector<enclosing_hold> around = holds_of_enclosing_runs();
  if (around.empty()) return std::nullopt;
  const std::string domain = identity_of(in);
  std::size_t held_units = 0;
  for (const enclosing_hold& its : around) {
    if (its.domain != domain || std::ranges::find(names, its.name) == names.end()) continue;
    const std::uint64_t before_ns = now_ns();
    // Runs around this one are on this host.
    for (const lock_user& user : in.users_of(its.name, nullptr, std::chrono::milliseconds(0))) {
      if (!is_that_run(user, its, before_ns) || (shared && user.held == mode::shared)) continue;
      // Another run may release a unit of a semaphore.
      held_units += std::max<std::size_t>(1, user.units_held.size());
      if (held_units + taken(of_semaphore) > existing(in, its.name, of_semaphore))
        return enclosing_run{its.name, user};
    }
  }
  return std::nullopt;
}

}  // namespace lockflight::cli
