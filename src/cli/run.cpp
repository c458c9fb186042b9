// lockflight run: a command under a named lock.
#include <unistd.h>

#include <algorithm>

#include "base/number.hpp"
#include "cli/commands.hpp"
#include "cli/domain_name.hpp"
#include "cli/guarded.hpp"
#include "cli/named.hpp"
#include "cli/run_events.hpp"
#include "cli/unit_options.hpp"
#include "lockflight/election.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::cli {
namespace {

constexpr std::uint64_t largest_code = 255;
constexpr double longest_grace_s = 1e6;
constexpr std::uint64_t most_retries = 1'000'000;

// The meaning of options of flock(1) that a run does not need.
constexpr const char* holds_alone = "nothing, since a run without --shared holds the lock alone";
constexpr const char* keeps_with_inherit =
    "nothing, since COMMAND keeps the lock only with --inherit";
constexpr const char* is_free_at_the_end = "nothing, since the lock is free when COMMAND has ended";
constexpr const char* is_a_child =
    "nothing, since COMMAND is a process of its own, and the run holds the lock until it has ended";

/// Refuses options about the wait for the lock that do not go together.
void check_together(const arguments& given, const char* option,
                    std::initializer_list<const char*> others) {
  for (const char* const other : others)
    if (given.has(option) && given.has(other))
      throw refuse(given, option, std::string("not together with ") + other);
}

std::vector<std::string> names_from(const arguments& given) {
  std::vector<std::string> names = given.all("NAME");
  if (names.empty())
    throw refuse("NAME", "",
                 "a lock of 1 to 255 bytes before --, or between two -- if it begins with '-'");
  for (const std::string& each : names) check_lock_name("NAME", each);
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end())
    throw refuse("NAME", *twice, "each name once");
  for (const char* const option : {"--units", "--leader", "--every", "--follow"})
    if (names.size() > 1 && given.has(option))
      throw refuse(given, option, "only with one NAME, not with " + joined(names, " and "));
  return names;
}

void read_on_owner_died(const std::string& text, guarded_command& what) {
  using enum guarded_command::after_death;
  if (text.empty()) throw refuse("--on-owner-died", text, "fail, run or a command for a shell");
  what.on_owner_died = text == "run" ? run : text == "fail" ? fail : repair;
  what.repair = text;
  if (what.on_owner_died == repair && what.held == mode::shared)
    throw refuse("--on-owner-died", text, "fail or run with --shared, as the lock is not alone");
}

/// The options about a COMMAND that fails, and about work that another run does.
void read_retries(const arguments& given, guarded_command& what) {
  what.notes_success = given.has("--success");
  if (what.notes_success && !what.period)
    throw refuse(given, "--success", "only with --every, whose periods it is about");
  if (const auto text = given.one("--retries"))
    what.retries = static_cast<int>(whole_number("--retries", *text, 0, most_retries));
  if (const auto text = given.one("--backoff")) {
    if (what.retries == 0)
      throw refuse("--backoff", *text, "only with --retries, whose pauses it is about");
    what.backoff = std::chrono::seconds(length_of_time("--backoff", *text));
  }
  check_together(given, "--retries", {"--leader", "--inherit"});
  what.follows = given.has("--follow");
  check_together(given, "--follow", {"--shared", "--leader", "--units", "--nonblock", "--inherit"});
}

void read_max_hold(const arguments& given, guarded_command& what) {
  const auto text = given.one("--max-hold");
  if (!text) return;
  what.max_hold = std::chrono::seconds(length_of_time("--max-hold", *text));
  check_together(given, "--max-hold", {"--inherit"});
  if (what.at_least > *what.max_hold)
    throw refuse("--max-hold", *text, "at least as long as --at-least");
}

void read_units(const arguments& given, guarded_command& what) {
  check_together(given, "--units", {"--shared", "--leader", "--every"});
  const auto take = given.one("--take");
  if (take && !given.has("--units"))
    throw refuse("--take", *take, "only with --units, of which so many are taken");
  const auto text = given.one("--units");
  if (!text) return;
  what.units = units_from("--units", *text);
  if (take) what.units->take = take_from("--take", *take, *what.units);
}

}  // namespace

guarded_command guarded_from(const arguments& given) {
  guarded_command what;
  what.names = names_from(given);
  what.in = *domain_name_from(given);
  if (given.has("--shared")) what.held = mode::shared;
  what.leads = given.has("--leader");
  what.value = given.one("--value");
  if (const auto text = given.one("--priority")) {
    if (!what.leads) throw refuse("--priority", *text, "only with --leader, whose priority it is");
    what.priority = static_cast<int>(whole_number("--priority", *text, 0, most_priority));
  }
  if (what.value && !what.leads)
    throw refuse("--value", *what.value, "only with --leader, whose value it is");
  if (what.value && what.value->size() > most_value_bytes)
    throw refuse("--value", std::to_string(what.value->size()) + " bytes",
                 "at most " + std::to_string(most_value_bytes));
  read_units(given, what);
  check_together(given, "--leader",
                 {"--shared", "--timeout", "--nonblock", "--every", "--conflict-exit-code"});
  check_together(given, "--every", {"--shared"});
  if (const auto text = given.one("--every")) what.period = length_of_time("--every", *text);
  read_retries(given, what);
  if (const auto text = given.one("--json")) what.events = events_descriptor("--json", *text);
  what.inherits = given.has("--inherit");
  if (what.inherits && what.in.name.starts_with("etcd:"))
    throw refuse(
        "--domain", what.in.name,
        "a domain of this machine beside --inherit, since a lock of a cluster may be lost, "
        "whichever process has the descriptor then");
  if (const auto text = given.one("--at-least"))
    what.at_least = std::chrono::seconds(length_of_time("--at-least", *text));
  read_max_hold(given, what);
  if (const auto text = given.one("--on-owner-died")) read_on_owner_died(*text, what);
  if (const auto text = given.one("--grace"))
    what.grace = std::chrono::nanoseconds(
        static_cast<std::int64_t>(seconds_number("--grace", *text, 0, longest_grace_s) * 1e9));
  if (const auto text = given.one("--timeout")) {
    if (given.has("--nonblock"))
      throw refuse("--timeout", *text, "--timeout or --nonblock, not both");
    what.patience = limit::of_ns(
        static_cast<std::uint64_t>(seconds_number("--timeout", *text, 0, most_wait_s) * 1e9));
  }
  if (given.has("--nonblock")) what.patience = limit::at_once();
  check_together(given, "--wait-anyway", {"--nonblock"});
  what.waits_anyway = given.has("--wait-anyway");
  if (const auto text = given.one("--on-deadlock")) {
    if (*text != "wait" && *text != "fail") throw refuse("--on-deadlock", *text, "wait or fail");
    check_together(given, "--on-deadlock", {"--nonblock"});
    what.fails_on_deadlock = *text == "fail";
  }
  check_together(given, "--no-wait-message", {"--verbose"});
  what.is_silent = given.has("--no-wait-message");
  if (!what.is_silent && isatty(STDERR_FILENO) != 0)
    what.says = wait_message::kind::redrawn;
  else if (given.has("--verbose"))
    what.says = wait_message::kind::line;
  what.says_who_holds = given.has("--verbose") || (given.has("--timeout") && !what.is_silent);
  if (const auto text = given.one("--conflict-exit-code"))
    what.conflict_exit_code =
        static_cast<int>(whole_number("--conflict-exit-code", *text, 0, largest_code));
  return what;
}

namespace {

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
      .description =
          {"Takes the lock NAME, runs COMMAND, and frees the lock when COMMAND has ended. You need "
           "not start or make anything before: the first use of a domain or a lock makes it.",
           "On a terminal, a run that has waited for a second says who holds the lock, for how "
           "long, and how many wait before it, in a line that it draws anew each second and takes "
           "away at the end. A run that gives up after --timeout says on standard error who holds "
           "the lock.",
           "SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 end a run that waits. A run "
           "that has the lock passes them on to COMMAND. If SIGINT or SIGQUIT ends COMMAND, it "
           "ends the run as well, and so the loop of a shell. Ctrl-Z stops COMMAND and the run, "
           "which keeps the lock. A run that waits leaves the queue at Ctrl-Z, and asks for the "
           "lock again when it is continued.",
           "When COMMAND has ended, what it has started and left running goes on, without the "
           "lock. If the run is killed, COMMAND is killed too, but not what COMMAND itself has "
           "started. The lock is free when both have ended. If COMMAND is killed, the run frees "
           "the lock and says so in one line on standard error.",
           "COMMAND finds these variables in its environment. LOCKFLIGHT_LOCK is the lock's name. "
           "LOCKFLIGHT_TOKEN is a number that is greater at each exclusive acquire of this name, "
           "so that a store can refuse an older holder; it is not set if the lock is shared. "
           "LOCKFLIGHT_OWNER_DIED is 1 if a holder that was alone died, until a COMMAND that holds "
           "the lock alone has ended with 0: then what the lock guards counts as repaired. The "
           "death of a run with --shared is not told, as it only reads what the lock guards. Nor "
           "is that of a run whose COMMAND had not begun, unless the domain is a cluster's.",
           "LOCKFLIGHT_INSIDE says which locks the runs around COMMAND hold. If COMMAND starts "
           "another run that would wait for one of them, each would wait for the other: the inner "
           "run exits with 2 at once and says so, unless both share the lock, or a run that is "
           "not around it has a unit of --units. With --wait-anyway it waits. It waits as well if "
           "the outer run has ended, or does not wait for COMMAND any more.",
           "With several NAMEs the run takes them all, in the order of their bytes, so that runs "
           "with overlapping names do not wait for each other in a circle. --timeout is that of "
           "all together; a run that does not get them all holds none. LOCKFLIGHT_LOCK and "
           "LOCKFLIGHT_TOKEN then have a line for each name, in that order.",
           "With --units N, up to N runs of NAME go on at a time, and others wait in the order in "
           "which they came. Each run has a unit of its own: LOCKFLIGHT_UNIT is its number, from 0 "
           "to N - 1, so that N commands can use N devices. LOCKFLIGHT_TOKEN and "
           "LOCKFLIGHT_OWNER_DIED are then about this unit. All that use NAME give the same N; "
           "'lockflight domain forget' forgets it, when nobody uses NAME.",
           "With a list such as --units 0,1,3 in place of N, the units are those with these numbers, "
           "0 to 61, such as devices of this machine. 'lockflight units NAME' shows the units, and "
           "'lockflight units NAME --set' changes them for all; then those that runs give do not "
           "count.",
           "With --take K as well, a run has K units: LOCKFLIGHT_UNIT lists them, such as '0,3', and "
           "LOCKFLIGHT_TOKEN has a line for each. The run gets all K or none. When it is next, it "
           "collects the units that become free and keeps them, and no other run is served "
           "meanwhile: so runs that take few do not delay one that takes many, and no two runs wait "
           "for units of each other. A run that gives up gives back what it has collected.",
           "With --on-owner-died CMD, a run that is told of a death first runs CMD in /bin/sh, "
           "under the lock and in the same environment. If CMD exits with 0, what the lock guards "
           "counts as repaired, and COMMAND runs without LOCKFLIGHT_OWNER_DIED; else the run "
           "exits with 65. With 'fail' it exits with 65 at once. Later runs are told as well, "
           "until one has repaired.",
           "A run that waits in a circle, each member of which waits for a lock that the next one "
           "holds, says so once. With --on-deadlock fail, the run in the circle that has waited "
           "for the shortest time gives up: it exits as after --timeout, and the others go on. "
           "'lockflight who' and 'lockflight top' show circles, too. Over several hosts of a "
           "cluster a circle is said, as far as the agents know it, and not ended.",
           "With --inherit, COMMAND and what it starts inherit a descriptor, 10 or above, and the "
           "lock is free when nobody has it open any more: so a daemon that COMMAND starts keeps "
           "the lock, unless it closes all its descriptors. The run ends with COMMAND, as it does "
           "otherwise; a process 'lockflight run' stays in the background and frees the lock; "
           "'lockflight who' shows a process that keeps it. If the run is killed, COMMAND goes on "
           "with the lock. If the process in the background is killed, COMMAND is killed, too; the "
           "lock is free when the process that 'lockflight who' has shown has ended, also if "
           "others go on, and the next holder finds LOCKFLIGHT_OWNER_DIED=1.",
           "In a cluster's domain, etcd:D, a host that is cut off loses its locks. The run then "
           "ends COMMAND, and all that COMMAND has started, daemons too, before another host can "
           "have the lock: by SIGTERM, --grace before that moment, and by SIGKILL. It says so on "
           "standard error, and exits with 76 when all have ended; the next holder finds "
           "LOCKFLIGHT_OWNER_DIED=1. A process that the run cannot end, as that of another user, "
           "is named on standard error, and the run waits for it.",
           "With --max-hold 10m the hold ends ten minutes after its beginning, and so does any hold "
           "that 'lockflight break NAME' ends. The run then ends COMMAND and what it has started, by "
           "SIGTERM and after --grace by SIGKILL, says so on standard error, and exits with 76. The "
           "lock is free when they have ended, never before, and the next holder finds "
           "LOCKFLIGHT_OWNER_DIED=1 unless COMMAND has ended with 0 after SIGTERM. In a run without "
           "--max-hold on one machine, a daemon that COMMAND has left running is not found by "
           "'lockflight break', and goes on.",
           "With --leader the run is a candidate for NAME. It waits as long as it takes; when it "
           "leads it says so on standard error, and runs COMMAND, which leads until it ends. If "
           "the lock is lost meanwhile, the run exits with 76, and a service manager starts it "
           "again as a candidate. With --value it publishes VALUE while it leads, for 'lockflight "
           "leader NAME' and for the elections of programs.",
           "With --every 1h, COMMAND runs at most once in each hour of the clock, whoever tries "
           "it: periods begin at full hours or days of UTC. The end of the period is noted before "
           "COMMAND starts, so that it counts as done also if COMMAND fails or is killed, and if the "
           "clock goes back. All that use NAME give the same period: another one is not noticed, "
           "since no length is noted. A restart of the machine and 'lockflight domain forget' "
           "forget the note. In a cluster the note is in etcd. While etcd does not answer the run "
           "waits, as for the lock; if it gives up while it writes the note, the period may count "
           "as done.",
           "With --success as well, the end of the period is noted when COMMAND has ended with 0: "
           "at most one COMMAND succeeds in a period, one runs at a time, and if it fails or is "
           "killed the next run tries again. COMMAND then belongs to the period in which it began.",
           "With --retries N, a COMMAND that fails runs again while the lock is held, up to N "
           "times, after --backoff, which doubles each time. A signal that ends the run, or the "
           "loss of the lock, ends this.",
           "With --follow, a run that finds another one at work waits for its end and exits with "
           "its exit code, so that work that many ask for at once is done once. With --every it "
           "exits with the code of the COMMAND that has done the work of this period. If the other "
           "run is killed or interrupted, this one works itself. The other run has --follow or "
           "--every, too, since only such runs keep their result ('lockflight done' shows it).",
           "With --json FD, each line on that descriptor is {\"event\", \"seconds\" since the run "
           "began, \"names\"} and what belongs to the event: \"waits\", once after a second, and "
           "\"not_free\", at the end of --timeout or --nonblock, have a \"name\", its \"holders\" "
           "and \"waiters\", each with fields as in 'lockflight who --json', as \"silent\" is, or "
           "the \"missing_answer\" of a cluster's etcd; \"acquired\" has "
           "\"tokens\", \"owner_died\", and with --units a \"unit\" and all \"units_held\"; \"ended\", which is about "
           "COMMAND, has \"code\" and \"ran\"; \"done\", of --every, has \"until\", seconds "
           "since 1970; \"follows\", of --follow, has fields as \"last\" of 'lockflight done "
           "--json'; \"retry\" is \"after\" so many seconds; \"interrupted\" has a \"signal\"; "
           "\"ends_soon\", when a tenth of --max-hold is left, has \"ends_in\", seconds; \"lost\" "
           "has \"why\": \"host\" in a cluster, \"limit\" after --max-hold, or \"broken\"; "
           "\"released\" has nothing more. A line that nobody reads within a tenth of a second is "
           "lost, with all after "
           "it.",
           json_of_bytes},
      .options = with_domain_options(
          {{.name = "NAME",
            .what =
                "the lock: 1 to 255 bytes without a new line; several names are taken together. "
                "Names that begin with '-' stand between two '--'",
            .repeats = true},
           {.name = "COMMAND",
            .what = "the command to run and its arguments, after --",
            .completes = option::offer::a_command},
           {.name = "--shared", .what = "share the lock with others that share it"},
           {.name = "--units",
            .earlier = "--slots",
            .value = units_value,
            .what =
                "at most N runs of NAME at a time, 1 to 1024, each with a unit of its own, 0 to "
                "N - 1; or the numbers of the units, such as 0,1,3 (--slots in earlier "
                "versions)"},
           {.name = "--take",
            .value = "K",
            .what = "with --units: take K of the N units, all of them or none; 1 to 31 (default: "
                    "1)"},
           {.name = "--timeout",
            .value = "S",
            .what = "wait for at most S seconds, such as 0.5 (default: as long as it takes)"},
           {.name = "--nonblock", .what = "do not wait if the lock is not free"},
           {.name = "--verbose",
            .what = "say after a second in one line what the run waits for, also without a "
                    "terminal, and with --nonblock who holds it"},
           {.name = "--no-wait-message",
            .what = "say nothing while the run waits, and nothing of the holder after --timeout"},
           {.name = "--json",
            .value = "FD",
            .what = "write what happens to the run as lines of JSON to this descriptor, which "
                    "COMMAND does not inherit, such as 3 with '3>events' in the shell"},
           {.name = "--leader", .what = "be a candidate for NAME, and lead while COMMAND runs"},
           {.name = "--priority",
            .value = "N",
            .what = "with --leader: when NAME becomes free, come before the candidates of a lesser "
                    "priority that wait; 0 to 1000 (default: 0)"},
           {.name = "--value",
            .value = "VALUE",
            .what =
                "with --leader: what 'lockflight leader NAME' prints while this run leads, such "
                "as an address"},
           {.name = "--every",
            .earlier = "--once-per",
            .value = "PERIOD",
            .what = "run COMMAND at most once in each period of time, such as 90s, 30m, 1h or 1d "
                    "(--once-per in earlier versions)"},
           {.name = "--success",
            .what = "with --every: the period is done when COMMAND has ended with 0, and the next "
                    "run tries again if it has failed"},
           {.name = "--retries",
            .value = "N",
            .what = "if COMMAND fails, run it again, up to N times, while the lock is held"},
           {.name = "--backoff",
            .value = "TIME",
            .what = "with --retries: the pause before COMMAND runs again, which doubles each time, "
                    "up to 10 minutes (default: 1s)"},
           {.name = "--follow",
            .what = "if another run works when this one comes, wait for its end, and exit with its "
                    "exit code instead of running COMMAND"},
           {.name = "--at-least",
            .value = "TIME",
            .what = "hold the lock so long from the moment it is there, also if COMMAND is "
                    "quicker, such as 30s, 5m or 1h"},
           {.name = "--max-hold",
            .value = "TIME",
            .what =
                "end COMMAND, and all that it has started, when the lock was held so long, such "
                "as 90s, 10m or 1h: by SIGTERM, and after --grace by SIGKILL; a line says so "
                "when a tenth of it is left"},
           {.name = "--inherit",
            .what = "processes that COMMAND leaves running keep the lock until the last of them "
                    "has ended, as with flock(1); the run ends with COMMAND"},
           {.name = "--on-owner-died",
            .value = "WHAT",
            .what =
                "if a holder that was alone died: run COMMAND, which is told (run, the default); exit with 65 "
                "(fail); or run WHAT in a shell first, which repairs what the lock guards"},
           {.name = "--grace",
            .value = "S",
            .what =
                "in a cluster: between SIGTERM and the loss of the lock, S seconds, but at most "
                "a third of the time to live (default: a 25th of it; 0: only SIGKILL). After "
                "--max-hold and 'lockflight break': between SIGTERM and SIGKILL (default: 5)"},
           {.name = "--wait-anyway", .what = "wait also for a run that this one is inside of"},
           {.name = "--on-deadlock",
            .value = "WHAT",
            .what = "if this run waits in a circle of processes that wait for each other's locks: "
                    "wait, after one line that names them (the default), or fail, as if it had not "
                    "got the lock in time",
            .completes = option::offer::words,
            .known = {"wait", "fail"}}},
          {{.name = "--conflict-exit-code",
            .shorthand = "-E",
            .value = "CODE",
            .what = "the exit code if the run does not get the lock in time, 0 to 255 (default: "
                    "1), and "
                    "with --every if COMMAND has run in this period (default: 0)"}}),
      // The options of flock(1).
      .options_elsewhere = {{"-n", "--nonblock"},
                            {"--nb", "--nonblock"},
                            {"-w", "--timeout S", "S"},
                            {"--wait", "--timeout S", "S"},
                            {"-s", "--shared"},
                            {"-x", holds_alone},
                            {"-e", holds_alone},
                            {"--exclusive", holds_alone},
                            {"-c", "-- sh -c WORDS", "WORDS"},
                            {"--command", "-- sh -c WORDS", "WORDS"},
                            {"-o", keeps_with_inherit},
                            {"--close", keeps_with_inherit},
                            {"-u", is_free_at_the_end},
                            {"--unlock", is_free_at_the_end},
                            {"-F", is_a_child},
                            {"--no-fork", is_a_child},
                            {"-v", "--verbose"},
                            {"-V", "'lockflight --version'"},
                            {"--version", "'lockflight --version'"}},
      .examples =
          {{"lockflight run backup -- rsync -a /srv /mnt/backup", "run one backup at a time"},
           {"lockflight run --nonblock -E 75 nightly -- ./nightly.sh",
            "do not run it if another one runs; the exit code is 75 then"},
           {"lockflight run --shared --timeout 10 index -- ./search words",
            "run searches side by side, while nobody rebuilds the index"},
           {"lockflight run --timeout 60 index data -- ./rebuild",
            "take both locks, whatever the order in which other runs name them"},
           {"lockflight run --units 2 gpu -- sh -c 'CUDA_VISIBLE_DEVICES=$LOCKFLIGHT_UNIT ./train'",
            "run two at a time, each on a device of its own"},
           {"lockflight run --on-owner-died ./repair.sh index -- ./add-to-index",
            "repair the index first, if a run was killed in the middle"},
           {"lockflight run --at-least 30s restart -- systemctl restart web",
            "restart at most twice a minute"},
           {"lockflight run --max-hold 2h backup -- ./backup.sh",
            "end a backup that hangs, so that the next one can run"},
           {"lockflight run --inherit --nonblock web -- ./start-web-server",
            "start a server that goes on in the background, unless one runs"},
           {"lockflight run --json 3 backup -- ./backup.sh 3>>backup.jsonl",
            "note in a file when the backup waited, ran and ended"},
           {"lockflight run --domain builds --mode 0660 --group staff cache -- make",
            "use a lock of all users of the group staff"},
           {"lockflight run --every 1d report -- ./report.sh",
            "run the report once a day, however often this is tried"},
           {"lockflight run --every 1d --success --retries 3 --backoff 1m report -- ./report.sh",
            "the same, until it succeeds: four tries now, and again whenever this is called"},
           {"lockflight run --follow cache -- ./rebuild-cache",
            "rebuild the cache once, however many ask for it at the same time"},
           {"lockflight run --domain etcd:jobs --leader scheduler -- ./scheduler",
            "run the scheduler on one host of a cluster, and on another one if that fails"},
           {"lockflight run --domain etcd:jobs --leader --value 10.0.0.5:80 web -- ./serve",
            "lead, and let 'lockflight leader web etcd:jobs' say where"}},
      .exit_codes = {{0,
                      "and any other code: that of COMMAND; 128 + n if signal n ended it, unless "
                      "the run ends by it as well; with --every 0 also if COMMAND has run in "
                      "this period"},
                     {1, "the run did not get the lock in time; -E sets another code"},
                     {2,
                      "bad usage, or a run around this one holds NAME; one line on standard error "
                      "says what is accepted"},
                     {3,
                      "the environment failed: memory or a process was refused, the domain is "
                      "damaged, or the agent of a cluster's domain runs in another time namespace"},
                     {not_repaired,
                      "a holder died, and --on-owner-died is fail, or its command has failed"},
                     {lost_lock,
                      "the lock was lost while COMMAND ran, in a cluster's domain; or the time of "
                      "--max-hold was over, or 'lockflight break' has ended the hold; COMMAND was "
                      "ended"},
                     {not_executable, "COMMAND cannot be run"},
                     {not_found, "COMMAND is not found"}},
      .run = run_run,
  };
}

}  // namespace lockflight::cli
