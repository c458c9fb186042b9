// lockflight who: the holders of a named lock, and those that wait for it.
#include <fmt/format.h>

#include <algorithm>

#include "base/visible_text.hpp"
#include "cli/commands.hpp"
#include "cli/domain_name.hpp"
#include "cli/named.hpp"
#include "tool/table.hpp"

namespace lockflight::cli {
namespace {

/// "in 2 min 3 s", "over, was broken".
std::string end_text(const hold_ending& end) {
  if (end.why == end_reason::none) return "";
  if (end.in.count() > 0) return "in " + duration(seconds_of(end.in));
  return end.why == end_reason::limit      ? "time is over"
         : end.why == end_reason::released ? "was released"
                                           : "was broken";
}

void print_users(console& out, std::span<const lock_user> of_lock, bool of_cluster) {
  const bool have_ends = std::ranges::any_of(
      of_lock, [](const lock_user& each) { return each.ending.why != end_reason::none; });
  table users({{.title = of_cluster ? "host" : "", .numeric = false},
               {.title = "pid"},
               {.title = "", .numeric = false},
               {.title = "for"},
               {.title = "", .numeric = false},
               {.title = "runs"},
               {.title = "command", .numeric = false},
               {.title = have_ends ? "ends" : "", .numeric = false},
               {.title = have_ends ? "note" : "", .numeric = false}});
  for (const lock_user& user : of_lock)
    users.add_row({{of_cluster && user.host.empty() ? "(here)" : visible(user.host)},
                   {std::to_string(user.pid)},
                   {cli::word_of(user)},
                   {duration(seconds_of(user))},
                   {state_text(user), user.dead || user.stopped ? style::bad : style::plain},
                   {user.guarded_pid == 0 ? "" : std::to_string(user.guarded_pid)},
                   {visible(user.command)},
                   {end_text(user.ending)},
                   {visible(user.note)}});
  users.print(out);
}

void print_lock(console& out, const domain_lock& lock, bool of_cluster,
                const std::vector<std::string>& silent) {
  const std::string silence = silence_text(silent);
  if (!silence.empty())
    out.line(out.paint(style::bad, fmt::format("{}: {} may hold {} or wait for it", silence,
                                               lock.users.empty() ? "somebody" : "somebody else",
                                               in_quotes(lock.name))));
  else if (lock.users.empty())
    out.line(fmt::format("nobody holds {} or waits for it", in_quotes(lock.name)));
  if (!lock.users.empty() && lock.units > 0)
    out.line(fmt::format("{} of {} units are held", count_of_held(lock), lock.units));
  if (!lock.users.empty()) print_users(out, lock.users, of_cluster);
  if (!lock.users.empty() && lock.owner_died)
    out.line("A holder died: what the lock guards may be half done.");
}

/// The circles with a member that holds that lock, or waits for it.
std::vector<lock_circle> with_lock(std::vector<lock_circle> circles, const std::string& name) {
  std::erase_if(circles, [&](const lock_circle& circle) {
    return std::ranges::none_of(circle, [&](const circle_member& each) {
      return each.holds == name || each.waits_for == name;
    });
  });
  return circles;
}

int run_who(const arguments& given, console& out) {
  const std::string name = given.one("NAME").value_or("");
  check_lock_name("NAME", name);
  const domain_name where = *domain_name_from(given);
  const domain in = where.attach();
  domain_lock found{.name = name};
  std::vector<std::string> silent;
  std::vector<domain_lock> all_locks = in.locks_on_all_hosts(&silent);
  const auto circles = with_lock(in.circles(all_locks), name);
  for (domain_lock& each : all_locks)
    if (each.name == name) found = std::move(each);
  if (given.has("--json")) {
    nlohmann::ordered_json all = cli::json_of(found);
    all["domain"] = where.name;
    if (!silent.empty()) all["silent"] = silent;
    for (const lock_circle& each : circles) all["circles"].push_back(cli::json_of(each));
    out.line(json_text(std::move(all), 2));
  } else {
    print_lock(out, found, in.is_of_cluster(), silent);
    for (const lock_circle& each : circles)
      out.line(out.paint(style::bad, "They wait in a circle: " + circle_text(each)));
  }
  if (!found.users.empty()) return 0;
  return silent.empty() ? 1 : environment_failed;
}

}  // namespace

command who_command() {
  return {
      .description =
          {"Shows the processes that hold the lock, and those that wait for it, the longest wait "
           "first. Each row has the process, since when it holds or waits, whether it is stopped "
           "or dead, the process of its command if it is a 'lockflight run', and a name, which "
           "for such a run is that of its command, also while it waits, and of the innermost one if "
           "that is a run, too. The domain is read without stopping anybody. In a cluster's domain, "
           "the agents of all hosts are asked; the first line says which of them do not answer. If "
           "some processes wait for each other in a circle, a line names its members.",
           "The JSON is {\"name\", \"kind\", \"parameters\", \"token\", \"acquires\", "
           "\"repairs\", \"owner_died\", \"holders\": [USER...], \"waiters\": [USER...], "
           "\"domain\"}, and a USER is {\"pid\", \"slot\", \"dead\", \"stopped\", \"use\": "
           "\"holds\"|\"shares\"|\"waits\", \"seconds\", \"guarded_pid\", \"command\"}. The "
           "guarded_pid is 0, or the process of a command that has to end as well before the "
           "holder counts as dead. A USER on another host has a \"host\", and its pid is that of "
           "its command; \"silent\", if it is there, are the hosts that do "
           "not answer, or \"the agent of this host\", and then no other host was asked. A USER "
           "with \"foreign_pid\": true has the numbers of another PID namespace, such as a "
           "container's. A semaphore, which 'lockflight run --units N' makes, has \"units\", "
           "which is N, and each of its holders a \"unit\" and all its \"units_held\", as has a waiter "
           "with --take that has collected some. A hold with an end has \"ends_in\", "
           "seconds, and \"ends_by\": \"limit\", \"broken\" or \"released\"; one of 'lockflight "
           "hold' has the \"token\" by which it is released, and its \"note\". If there are circles, \"circles\" has "
           "an array for each, whose members are USERs with \"holds\" and \"waits_for\". The "
           "\"acquires\" are the exclusive ones on this host since the lock was made. "
           "\"owner_died\" is about exclusive holders: the death of one that shares is not told "
           "to later holders.",
           json_of_bytes},
      .options = with_domain_options(
          {{.name = "NAME", .what = "the lock; one that begins with '-' comes after '--'"},
           domain_argument("the domain of the lock, as --domain")},
          {{.name = "--json", .what = "print one JSON document instead of the table"}}),
      .examples = {{"lockflight who backup", "show who runs the backup now"},
                   {"lockflight who backup --domain work --mode 0660",
                    "look into the group's domain, if you have one of that name, too"},
                   {"lockflight who backup work --mode 0660 --group staff",
                    "look into that of the group staff, if several groups have one"},
                   {"lockflight who backup --json | jq '.holders[].pid'",
                    "print only the processes that hold it"}},
      .exit_codes = {{0, "somebody holds the lock or waits for it"},
                     {1, "nobody does"},
                     {2, "bad usage or input; one line on standard error says what is accepted"},
                     {3,
                      "the environment failed; or nobody does as far as is known, but a host of "
                      "the cluster, or the agent of this one, does not answer"}},
      .run = run_who,
  };
}

}  // namespace lockflight::cli
