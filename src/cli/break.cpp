// lockflight break: ends holds of other processes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "base/visible_text.hpp"
#include "cli/commands.hpp"
#include "cli/domain_name.hpp"
#include "cli/named.hpp"
#include "cli/operator.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::cli {
namespace {

using std::chrono::nanoseconds;
using result = ordered_hold::result;

/// Longer than `lockflight run` takes to end its command, unless its --grace is longer.
constexpr double usual_grace_s = 10;
constexpr double longest_break_grace_s = 1e6;
/// The kernel may take its time to end a process that was killed.
constexpr auto killed_ends_within = std::chrono::seconds(5);

std::string held_text(const lock_user& user) {
  return fmt::format("{} {} for {}{}", user_text(user), use_text(user), duration(seconds_of(user)),
                     user.note.empty() ? "" : fmt::format(": {}", in_quotes(user.note)));
}

/// Asks on the terminal.
bool is_confirmed(console& out, const std::string& name, double grace_s) {
  out.print(
      fmt::format("Break the hold of {}, and kill a process that still holds after {:g} s? "
                  "[y/N] ",
                  in_quotes(name), grace_s));
  out.finish();
  std::array<char, 8> line{};
  if (std::fgets(line.data(), line.size(), stdin) == nullptr) return false;
  const std::string_view all(line.data());
  const std::string_view answer = all.substr(0, all.find('\n'));
  return answer == "y" || answer == "yes" || answer == "Y";
}

void say_why_not(console& out, const ordered_hold& each) {
  const std::string who = fmt::format("{} still {}: ", user_text(each.user), use_text(each.user));
  if (each.how == result::elsewhere)
    out.line(who + "it is in another PID namespace, where 'lockflight break' can kill it");
  else if (each.user.host.empty())
    out.line(who + "this user may not kill it");
  else
    out.line(who + "the agent of that host may not kill it; 'lockflight break' on that host can");
}

/// Kills the holders of these holds. Returns true if none is left.
bool kill_holders(console& out, const operated_lock& lock, const std::vector<lock_user>& holders) {
  hold_order kills{.what = hold_order::kind::kills};
  std::ranges::transform(holders, std::back_inserter(kills.holds), &lock_user::hold);
  const auto found = lock.order(kills);
  const auto left = lock.await_end(found, killed_ends_within, [&](const lock_user& each) {
    out.line(fmt::format("{} was killed; the next holder is told that it died", user_text(each)));
  });
  for (const lock_user& each : left)
    out.line(fmt::format("{} was killed and has not ended yet", user_text(each)));
  bool is_free = left.empty();
  for (const ordered_hold& each : found) {
    if (each.how != result::not_permitted && each.how != result::elsewhere) continue;
    say_why_not(out, each);
    is_free = false;
  }
  return is_free;
}

int run_break(const arguments& given, console& out) {
  const std::string name = given.one("NAME").value_or("");
  check_lock_name("NAME", name);
  const auto grace =
      seconds_number("--grace", given.one("--grace").value_or(fmt::format("{}", usual_grace_s)), 0,
                     longest_break_grace_s);
  const operated_lock lock(*domain_name_from(given), name);
  const auto holders = lock.holders();
  const std::string silence = silence_text(lock.silent());
  if (!silence.empty())
    out.line(out.paint(
        style::bad, fmt::format("{}: {} may hold {}", silence,
                                holders.empty() ? "somebody" : "somebody else", in_quotes(name))));
  else if (holders.empty())
    out.line(fmt::format("nobody holds {}", in_quotes(name)));
  if (holders.empty()) return silence.empty() ? 1 : environment_failed;
  const bool asks = !given.has("--yes");
  if (asks && isatty(STDIN_FILENO) == 0)
    throw refuse(
        "--yes", "",
        fmt::format("--yes, as there is no terminal to ask on; {}", held_text(holders.front())));
  for (const lock_user& each : holders) out.line(held_text(each));
  if (asks && !is_confirmed(out, name, grace)) return 1;
  out.finish();
  // The holds that were shown: one that began meanwhile is left alone.
  hold_order ends{.what = hold_order::kind::ends};
  std::ranges::transform(holders, std::back_inserter(ends.holds), &lock_user::hold);
  std::erase(ends.holds, 0U);
  const auto told = lock.order(ends);
  if (std::ranges::find(told, result::told, &ordered_hold::how) == told.end())
    out.line(fmt::format("{} was released meanwhile", in_quotes(name)));
  const auto left = lock.await_end(
      told, nanoseconds(static_cast<std::int64_t>(grace * 1e9)), [&](const lock_user& each) {
        out.line(fmt::format("{} has ended its hold", user_text(each)));
      });
  const bool is_free = left.empty() || kill_holders(out, lock, left);
  if (!is_free) return still_held;
  return silence.empty() ? 0 : environment_failed;
}

}  // namespace

command break_command() {
  return {
      .description =
          {"Ends the holds of NAME, of whichever processes and, in a cluster's domain, on whichever "
           "hosts. It names the holders, asks on a terminal, and tells each holder: a 'lockflight "
           "run' ends its command and exits with 76, a program sees the loss of its hold, and "
           "'lockflight hold' ends. A process that still holds after --grace is killed. A line says "
           "what has become of each. Those that wait, and holds that begin meanwhile, are left "
           "alone.",
           "The lock is free only when the holder has released it or has ended, so two processes "
           "never hold it. The next holder is told that a holder died, unless the command of a run "
           "has ended with 0 after SIGTERM, and has a greater token.",
           "A process is killed by the rights of this user; on other hosts of a cluster the agent "
           "there does it, in a domain of mode 0600 alone. Each order is logged, by syslog(3) and in "
           "the log of those agents. A process of another PID namespace, such as a container's, is "
           "told, but cannot be killed from here."},
      .options = with_domain_options(
          {{.name = "NAME", .what = "the lock; one that begins with '-' comes after '--'"},
           domain_argument("the domain of the lock, as --domain"),
           {.name = "--yes", .what = "do not ask"},
           {.name = "--grace",
            .value = "S",
            .what = "kill a holder that still holds S seconds after it was told (default: 10)"}},
          {}),
      .examples = {{"lockflight break backup", "ask, and end the backup that holds the lock"},
                   {"lockflight break --yes --grace 60 backup",
                    "do not ask, and give it a minute to end"},
                   {"lockflight break --domain etcd:jobs --yes backup",
                    "the same on whichever host of a cluster it runs"}},
      .exit_codes =
          {{0, "none of the holders holds any more"},
           {1, "nobody holds the lock, or the answer was not yes"},
           {2,
            "bad usage, or no terminal and no --yes; one line on standard error says what "
            "is accepted"},
           {3,
            "the environment failed, or a host of the cluster, or the agent of this one, "
            "does not answer, so that somebody may hold the lock there"},
           {still_held, "a holder still holds, as it may not be killed or does not end"}},
      .run = run_break,
  };
}

}  // namespace lockflight::cli
