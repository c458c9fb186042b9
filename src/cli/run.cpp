// lockflight run: a command under a named lock.
#include "cli/command.hpp"
#include "cli/guarded.hpp"
#include "cli/named.hpp"
#include "cli/text.hpp"
#include "cli/usage.hpp"
#include "cli/values.hpp"

namespace lockflight::cli {
namespace {

constexpr std::uint64_t largest_code = 255;

/// The front reads lines without errors itself; this reads all lines, and says what is wrong.
guarded_command guarded_from(const arguments& given) {
  guarded_command what;
  what.name = given.one("NAME").value_or("");
  check_lock_name("NAME", what.name);
  if (const auto domain = given.one("--domain")) what.domain = *domain;
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
  return {
      .name = "run",
      .summary = "run a command while a named lock is held, as flock(1) does",
      .description =
          {"Takes the lock NAME, runs COMMAND, and frees the lock when COMMAND has ended. Nothing "
           "has to be started or made before: the first use of a domain or a lock makes it.",
           "SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to COMMAND. If "
           "this program is killed, the lock is free at once, and COMMAND is killed too (what "
           "COMMAND itself has started is not). If COMMAND is killed, the lock is freed.",
           "COMMAND finds in its environment LOCKFLIGHT_LOCK, the lock's name; LOCKFLIGHT_TOKEN, "
           "unless the lock is shared: a number that is greater at each exclusive acquire of this "
           "name, so that whoever is written to can refuse an older holder; and "
           "LOCKFLIGHT_OWNER_DIED=1 if a holder died, until a COMMAND that holds the lock alone "
           "has ended with 0: then what it guards counts as repaired."},
      .options = {{.name = "NAME", .what = "the lock: 1 to 255 bytes without a new line"},
                  {.name = "COMMAND",
                   .what = "the command to run and its arguments, after --",
                   .completes = option::offer::a_command},
                  {.name = "--shared", .what = "share the lock with others that share it"},
                  {.name = "--timeout",
                   .value = "S",
                   .what =
                       "wait at most so many seconds, such as 0.5 (default: as long as it takes)"},
                  {.name = "--nonblock", .what = "do not wait at all"},
                  domain_option(),
                  {.name = "--conflict-exit-code",
                   .shorthand = "-E",
                   .value = "CODE",
                   .what =
                       "the exit code where the lock is not had in time, 0 to 255 (default: 1)"}},
      .examples = {{"lockflight run backup -- rsync -a /srv /mnt/backup", "one backup at a time"},
                   {"lockflight run --nonblock -E 75 nightly -- ./nightly.sh",
                    "not at all if another one runs; then the exit code is 75"},
                   {"lockflight run --shared --timeout 10 index -- ./search words",
                    "many searches, while nobody rebuilds the index"}},
      .exit_codes = {{0, "and any other code: that of COMMAND; 128 + n if signal n ended it"},
                     {1, "the lock was not had in time, or the CODE of -E"},
                     {2, "bad usage; one line on standard error says what is accepted"},
                     {3, "the environment failed: no slot is free, memory was refused"},
                     {not_executable, "COMMAND cannot be run"},
                     {not_found, "COMMAND is not found"}},
      .run = run_run,
  };
}

}  // namespace lockflight::cli
