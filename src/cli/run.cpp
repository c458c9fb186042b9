// lockflight run: a command under a named lock.
#include <grp.h>

#include "base/number.hpp"
#include "cli/commands.hpp"
#include "cli/guarded.hpp"
#include "cli/named.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::cli {
namespace {

constexpr std::uint64_t largest_code = 255;

bool is_a_group(const std::string& text) {
  return read_number<gid_t>(text) || getgrnam(text.c_str()) != nullptr;
}

std::string group_of(const arguments& given, unsigned mode) {
  constexpr unsigned of_group = 0660;
  const auto text = given.one("--group");
  if (!text) return "";
  if (mode != of_group) throw refuse("--group", *text, "only with --mode 0660");
  if (!is_a_group(*text)) throw refuse("--group", *text, "the name or the number of a group");
  return *text;
}

guarded_command guarded_from(const arguments& given) {
  guarded_command what;
  what.name = given.one("NAME").value_or("");
  check_lock_name("NAME", what.name);
  if (const auto domain = given.one("--domain")) what.domain = *domain;
  what.mode = mode_of(given);
  what.group = group_of(given, what.mode);
  what.shared = given.has("--shared");
  if (const auto text = given.one("--timeout")) {
    if (given.has("--nonblock"))
      throw refuse("--timeout", *text, "--timeout or --nonblock, not both");
    what.within_ns =
        static_cast<std::uint64_t>(real_number("--timeout", *text, 0, longest_wait_s) * 1e9);
  }
  if (given.has("--nonblock")) what.within_ns = 0;
  if (const auto text = given.one("--conflict-exit-code"))
    what.conflict_exit_code =
        static_cast<int>(whole_number("--conflict-exit-code", *text, 0, largest_code));
  return what;
}

int run_run(const arguments& given, console& /*out*/) {
  guarded_command what = guarded_from(given);
  std::vector<std::string> words = given.all("COMMAND");
  if (words.empty()) throw refuse("COMMAND", "", "-- and the command to run, after NAME");
  for (std::string& word : words) what.words.push_back(word.data());
  what.words.push_back(nullptr);
  return run_guarded(what);
}

}  // namespace

command run_command() {
  option mode = mode_option();
  mode.what =
      "the domain's mode: 0600, its user's own; 0660, its group's (default: as it exists, "
      "0600 if it is made)";
  return {
      .description =
          {"Takes the lock NAME, runs COMMAND, and frees the lock when COMMAND has ended. You need "
           "not "
           "start or make anything before: the first use of a domain or a lock makes it.",
           "SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 end a run that waits. A run that "
           "has the lock passes them on to COMMAND. If SIGINT or SIGQUIT ends COMMAND, it ends the "
           "run as well, and so the loop of a shell. Ctrl-Z stops COMMAND and the run, which keeps "
           "the lock. A run that waits leaves the queue at Ctrl-Z, and asks for the lock again "
           "when "
           "it is continued.",
           "If the run is killed, COMMAND is killed too, but not what COMMAND itself has started. "
           "The lock is free when both have ended. If COMMAND is killed, the run frees the lock "
           "and "
           "says so in one line on standard error.",
           "COMMAND finds three variables in its environment. LOCKFLIGHT_LOCK is the lock's name. "
           "LOCKFLIGHT_TOKEN is a number that is greater at each exclusive acquire of this name, "
           "so "
           "that a store can refuse an older holder; it is not set if the lock is shared. "
           "LOCKFLIGHT_OWNER_DIED is 1 if a holder died, until a COMMAND that holds the lock alone "
           "has ended with 0: then what the lock guards counts as repaired."},
      .options =
          {{.name = "NAME", .what = "the lock: 1 to 255 bytes without a new line"},
           {.name = "COMMAND",
            .what = "the command to run and its arguments, after --",
            .completes = option::offer::a_command},
           {.name = "--shared", .what = "share the lock with others that share it"},
           {.name = "--timeout",
            .value = "S",
            .what = "wait for at most S seconds, such as 0.5 (default: as long as it takes)"},
           {.name = "--nonblock", .what = "do not wait if the lock is not free"},
           domain_option(),
           mode,
           {.name = "--group",
            .value = "G",
            .what = "with --mode 0660: the group whose users share the domain that is made, "
                    "by name or number (default: your effective group)"},
           {.name = "--conflict-exit-code",
            .shorthand = "-E",
            .value = "CODE",
            .what =
                "the exit code if the run does not get the lock in time, 0 to 255 (default: 1)"}},
      .examples = {{"lockflight run backup -- rsync -a /srv /mnt/backup",
                    "run one backup at a time"},
                   {"lockflight run --nonblock -E 75 nightly -- ./nightly.sh",
                    "do not run it if another one runs; the exit code is 75 then"},
                   {"lockflight run --shared --timeout 10 index -- ./search words",
                    "run searches side by side, while nobody rebuilds the index"},
                   {"lockflight run --domain builds --mode 0660 --group staff cache -- make",
                    "use a lock of all users of the group staff"}},
      .exit_codes = {{0,
                      "and any other code: that of COMMAND; 128 + n if signal n ended it, unless "
                      "the run ends by it as well"},
                     {1, "the run did not get the lock in time; -E sets another code"},
                     {2, "bad usage; one line on standard error says what is accepted"},
                     {3,
                      "the environment failed: memory or a process was refused, or the domain is "
                      "damaged"},
                     {not_executable, "COMMAND cannot be run"},
                     {not_found, "COMMAND is not found"}},
      .run = run_run,
  };
}

}  // namespace lockflight::cli
