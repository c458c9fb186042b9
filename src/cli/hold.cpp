// lockflight hold and lockflight release: a hold with a life of its own, such as a maintenance
// window.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/visible_text.hpp"
#include "cli/commands.hpp"
#include "cli/domain_name.hpp"
#include "cli/guarded.hpp"
#include "cli/keeper.hpp"
#include "cli/named.hpp"
#include "cli/operator.hpp"
#include "cli/periods.hpp"
#include "cli/standard_error.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::cli {
namespace {

constexpr std::size_t longest_note = 128;

/// The option of that name of `lockflight run`.
option of_run(const std::string& name) {
  for (const option& each : run_command().options)
    if (each.name == name) return each;
  return {.name = name, .what = ""};
}

std::string note_from(const arguments& given) {
  const std::string note = given.one("--note").value_or("");
  if (note.size() > longest_note || note.find('\0') != std::string::npos)
    throw refuse("--note", note, fmt::format("at most {} bytes", longest_note));
  return note;
}

int run_hold(const arguments& given, console& out) {
  speak_as("hold");
  const auto time = given.one("--for");
  if (!time) throw refuse("--for", "", "how long the lock is held, such as 90s, 30m, 1h or 1d");
  const std::chrono::seconds length(length_of_time("--for", *time));
  const std::string note = note_from(given);
  const guarded_command what = guarded_from(given.without("--json"));
  return run_keeper(what, length, note, [&](kept is) {
    nlohmann::ordered_json all{
        {"name", what.names.front()}, {"domain", what.in.name}, {"token", is.token},
        {"ends_in", length.count()},  {"note", note},           {"pid", is.pid}};
    if (is.unit >= 0) all["unit"] = is.unit;
    out.line(given.has("--json") ? json_text(std::move(all), 2) : std::to_string(is.token));
    out.finish();
  });
}

// ---- release ----

/// Refuses a token that no keeper has.
[[noreturn]] void refuse_token(const std::string& token, const std::vector<ordered_hold>& found) {
  std::string tokens;
  for (const ordered_hold& each : found)
    if (each.how == ordered_hold::result::other_token)
      tokens +=
          fmt::format("{}{}{}", tokens.empty() ? "" : " or ", each.user.kept_token,
                      each.user.note.empty() ? "" : fmt::format(", {}", in_quotes(each.user.note)));
  throw refuse("--token", token, fmt::format("that of the hold, which is {}", tokens));
}

int run_release(const arguments& given, console& out) {
  const std::string name = given.one("NAME").value_or("");
  check_lock_name("NAME", name);
  const auto token = given.one("--token");
  if (!token) throw refuse("--token", "", "the number that 'lockflight hold' has printed");
  const operated_lock lock(*domain_name_from(given), name);
  const auto found = lock.order({.what = hold_order::kind::releases,
                                 .token = whole_number("--token", *token, 1, UINT64_MAX)});
  const auto has = [&](ordered_hold::result how) {
    return std::ranges::find(found, how, &ordered_hold::how) != found.end();
  };
  if (!has(ordered_hold::result::told)) {
    if (has(ordered_hold::result::other_token)) refuse_token(*token, found);
    const std::string silence = silence_text(lock.silent());
    if (found.empty() || has(ordered_hold::result::gone)) {
      out.line(silence.empty() ? fmt::format("nobody holds {}", in_quotes(name))
                               : fmt::format("{}: somebody may hold {}", silence, in_quotes(name)));
      return silence.empty() ? 1 : environment_failed;
    }
    throw refuse("NAME", name,
                 fmt::format("a lock that 'lockflight hold' holds; {} {}, which 'lockflight break' "
                             "ends",
                             user_text(found.front().user), use_text(found.front().user)));
  }
  constexpr auto at_most = std::chrono::seconds(3);
  const auto left = lock.await_end(found, at_most, [](const lock_user&) {});
  if (left.empty()) return 0;
  out.line(fmt::format("{} still {} after {} s; 'lockflight break' ends it",
                       user_text(left.front()), use_text(left.front()), at_most.count()));
  return still_held;
}

}  // namespace

command hold_command() {
  return {
      .description =
          {"Takes the lock NAME and keeps it, without a command that runs meanwhile: for a "
           "maintenance window, or to keep others out by hand. Waits as 'lockflight run' does. When "
           "the lock is held, it prints a number, the token, and exits with 0. A process in the "
           "background keeps the lock until the time of --for is over, 'lockflight release NAME "
           "--token T' ends it, or 'lockflight break NAME' does. The process has a session of its "
           "own, so the end of the shell or of the terminal does not end it.",
           "The token is that of the lock, as LOCKFLIGHT_TOKEN of 'lockflight run' is; with --shared "
           "and --units it is a number for 'lockflight release' alone.",
           "'lockflight who NAME' shows when the hold ends, and its note. A hold that ends by its "
           "time, by 'lockflight release' or by SIGTERM to the process in the background is a "
           "release like any other. After 'lockflight break', or if that process is killed, the next "
           "holder is told that a holder died.",
           "A lock follows the life of its holder, so a restart of the machine on which 'lockflight "
           "hold' was called ends the hold. In a cluster, call it on a host that is not restarted.",
           "The JSON is {\"name\", \"domain\", \"token\", \"ends_in\", seconds, \"note\", "
           "\"pid\", of the process in the background}, and with --units \"unit\".",
           json_of_bytes},
      .options = with_domain_options(
          {{.name = "NAME", .what = "the lock; one that begins with '-' comes after '--'"},
           {.name = "--for",
            .value = "TIME",
            .what = "how long the lock is held, such as 90s, 30m, 1h or 1d"},
           {.name = "--note",
            .value = "TEXT",
            .what = "what it is held for, up to 128 bytes, which 'lockflight who' shows"},
           {.name = "--shared", .what = "share the lock with others that share it"},
           of_run("--units"),
           of_run("--timeout"),
           of_run("--nonblock"),
           of_run("--verbose"),
           of_run("--no-wait-message"),
           {.name = "--json", .what = "print one JSON document instead of the token"}},
          {{.name = "--conflict-exit-code",
            .shorthand = "-E",
            .value = "CODE",
            .what = "the exit code if the lock is not free in time, 0 to 255 (default: 1)"}}),
      .examples = {{"lockflight hold deploy --for 30m --note 'kernel upgrade'",
                    "let nobody deploy for half an hour"},
                   {"token=$(lockflight hold --nonblock deploy --for 2h)",
                    "the same if nobody deploys now; keep the token for 'lockflight release'"},
                   {"lockflight hold --domain etcd:jobs backup --for 1d --note 'disk replaced'",
                    "let no host of a cluster make a backup for a day"}},
      .exit_codes = {{0, "the lock is held, and its token was printed"},
                     {1, "the lock was not free in time; -E sets another code"},
                     {2, "bad usage or input; one line on standard error says what is accepted"},
                     {3, "the environment failed"}},
      .run = run_hold,
  };
}

command release_command() {
  return {
      .description =
          {"Ends a hold that 'lockflight hold' keeps, from any process, and in a cluster's domain "
           "from any host. The token has to be the one that 'lockflight hold' has printed, so that a "
           "late command does not end a later hold. It returns when the lock is released. Other "
           "holds are ended by their holders, or by 'lockflight break'."},
      .options = with_domain_options(
          {{.name = "NAME", .what = "the lock; one that begins with '-' comes after '--'"},
           domain_argument("the domain of the lock, as --domain"),
           {.name = "--token",
            .value = "T",
            .what = "the number that 'lockflight hold' has printed"}},
          {}),
      .examples = {{"lockflight release deploy --token \"$token\"", "end the hold early"},
                   {"lockflight release --domain etcd:jobs backup --token \"$token\"",
                    "end a hold of any host of a cluster"}},
      .exit_codes = {{0, "the hold has ended"},
                     {1, "nobody holds the lock"},
                     {2,
                      "bad usage, another token, or no hold of 'lockflight hold'; one line on "
                      "standard error says what is accepted"},
                     {3,
                      "the environment failed; or nobody holds the lock as far as is known, but a "
                      "host of the cluster, or the agent of this one, does not answer"},
                     {still_held, "the process that keeps the lock does not react"}},
      .run = run_release,
  };
}

}  // namespace lockflight::cli
