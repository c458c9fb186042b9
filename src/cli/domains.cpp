// lockflight domain: lists, shows and removes domains.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/numbers.hpp"
#include "base/visible_text.hpp"
#include "cli/commands.hpp"
#include "cli/domain_name.hpp"
#include "cli/named.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace lockflight::cli {
namespace {

using nlohmann::ordered_json;

const std::vector<std::string>& actions() {
  static const std::vector<std::string> known{"list", "show", "remove", "forget"};
  return known;
}

void print_document(console& out, const ordered_json& document) {
  out.line(json_text(document, 2));
}

struct summary {
  std::size_t participants = 0;
  int slots = 0;
  std::uint32_t locks = 0;
  std::uint32_t names = 0;
  std::string problem;  ///< empty, or why the rest is not known
};

/// The summary of a domain; nothing if it does not exist any more. A domain may be removed while we
/// read, or be of another version: the command goes on then.
std::optional<summary> summary_of(const std::string& name, const domain_owner& owner) {
  try {
    const domain in = domain::attach(name, owner.mode, owner.group);
    return summary{.participants = in.participants().size(),
                   .slots = in.options().slots,
                   .locks = in.names(),
                   .names = in.options().names,
                   .problem = ""};
  } catch (const domain_error& e) {
    if (e.why == domain_error::reason::missing) return std::nullopt;
    return summary{.problem = visible(e.what())};
  }
}

ordered_json json_of(const std::string& name, const domain_owner& owner, const summary& s) {
  ordered_json one{{"name", name}};
  if (!s.problem.empty())
    one["problem"] = s.problem;
  else
    one.update({{"participants", s.participants},
                {"slots", s.slots},
                {"locks", s.locks},
                {"names", s.names},
                {"mode", fmt::format("{:04o}", owner.mode)}});
  if (!owner.group.empty()) one["group"] = owner.group;
  return one;
}

int list(const arguments& given, console& out) {
  const std::vector<std::string> names = domain::list();
  if (given.has("--names")) {
    for (const std::string& name : names) out.line(name);
    return 0;
  }
  ordered_json all = ordered_json::array();
  table shown({{.title = "domain", .numeric = false},
               {.title = "slots taken"},
               {.title = "of"},
               {.title = "names taken"},
               {.title = "of"},
               {.title = "mode"},
               {.title = "group"},
               {.title = "", .numeric = false}});
  const auto add = [&](const std::string& name, const domain_owner& owner, const summary& s) {
    const auto unless_problem = [&](auto number) {
      return s.problem.empty() ? std::to_string(number) : "";
    };
    shown.add_row({{name},
                   {unless_problem(s.participants)},
                   {unless_problem(s.slots)},
                   {unless_problem(s.locks)},
                   {unless_problem(s.names)},
                   {fmt::format("{:04o}", owner.mode)},
                   {owner.group},
                   {s.problem, style::bad}});
    all.push_back(json_of(name, owner, s));
  };
  // The user may have an own domain of that name and those of groups.
  for (const std::string& name : names)
    for (const domain_owner& owner : domain::owners_of(name))
      if (const auto found = summary_of(name, owner)) add(name, owner, *found);
  if (given.has("--json"))
    print_document(out, {{"domains", all}});
  else if (names.empty())
    out.line("no domain; 'lockflight run' makes one");
  else
    shown.print(out);
  return 0;
}

ordered_json slots_json(const std::vector<domain_slot>& slots) {
  ordered_json all = ordered_json::array();
  for (const domain_slot& s : slots) {
    all.push_back({{"slot", s.slot},
                   {"pid", s.pid},
                   {"thread", s.thread},
                   {"dead", s.dead},
                   {"stopped", s.stopped},
                   {"guarded_pid", s.guarded_pid},
                   {"command", s.command}});
    if (s.has_foreign_pid) all.back()["foreign_pid"] = true;
  }
  return all;
}

void print_slots(console& out, const std::vector<domain_slot>& slots) {
  table shown({{.title = "slot"},
               {.title = "pid"},
               {.title = "thread"},
               {.title = "", .numeric = false},
               {.title = "runs"},
               {.title = "command", .numeric = false}});
  for (const domain_slot& s : slots)
    shown.add_row({{std::to_string(s.slot)},
                   {std::to_string(s.pid)},
                   {std::to_string(s.thread)},
                   {state_text(s), style::bad},
                   {s.guarded_pid == 0 ? "" : std::to_string(s.guarded_pid)},
                   {visible(s.command)}});
  shown.print(out);
}

std::string pids(std::span<const lock_user> users) {
  std::vector<std::string> all;
  for (const lock_user& user : users) {
    const auto state = state_text(user);
    std::string one = user.host.empty() ? std::to_string(user.pid)
                                        : fmt::format("{}:{}", visible(user.host), user.pid);
    if (!user.units_held.empty())
      one = fmt::format("{} ({} {})", one, user.units_held.size() == 1 ? "unit" : "units",
                        numbers_text(user.units_held, ", "));
    if (!state.empty()) one += fmt::format(" ({})", state);
    all.push_back(std::move(one));
  }
  return joined(all, " ");
}

void print_locks(console& out, const std::vector<domain_lock>& locks) {
  table shown({{.title = "lock", .numeric = false, .most = widest_name},
               {.title = "kind", .numeric = false},
               {.title = "token"},
               {.title = "repairs"},
               {.title = "held by", .numeric = false},
               {.title = "awaited by", .numeric = false},
               {.title = "", .numeric = false}});
  for (const domain_lock& lock : locks)
    shown.add_row({{visible(lock.name)},
                   {kind_of(lock)},
                   {std::to_string(lock.token)},
                   {std::to_string(lock.repairs)},
                   {pids(holders_of(lock.users))},
                   {pids(waiters_of(lock.users))},
                   {lock.owner_died ? "a holder died" : "", style::bad}});
  shown.print(out);
}

ordered_json json_of(const domain& in, const std::vector<domain_slot>& slots,
                     const std::vector<domain_lock>& locks,
                     const std::vector<std::string>& silent) {
  const domain_options& made = in.options();
  ordered_json all{{"name", in.name()},
                   {"slots", made.slots},
                   {"names", made.names},
                   {"mode", fmt::format("{:04o}", made.mode)}};
  if (!made.group.empty()) all["group"] = made.group;
  all.update({{"names_taken", in.names()},
              {"participants", slots_json(slots)},
              {"locks", ordered_json::array()}});
  for (const domain_lock& each : locks) all["locks"].push_back(cli::json_of(each));
  if (!silent.empty()) all["silent"] = silent;
  return all;
}

int show(const domain_name& named, bool as_json, console& out) {
  const domain in = named.attach();
  const std::vector<domain_slot> slots = in.participants();
  std::vector<std::string> silent;
  const std::vector<domain_lock> locks = in.locks_on_all_hosts(&silent);
  if (as_json) {
    print_document(out, json_of(in, slots, locks, silent));
    return 0;
  }
  const std::string silence = silence_text(silent);
  if (!silence.empty()) out.line(out.paint(style::bad, silence + ": more locks may be in use"));
  const domain_options& made = in.options();
  // Names, as `list` counts them: a semaphore of N units takes up to N + 1.
  out.line(fmt::format("{}: {} of {} slots taken, {} of {} names taken, mode {:04o}{}", in.name(),
                       slots.size(), made.slots, in.names(), made.names, made.mode,
                       made.group.empty() ? "" : ", group " + made.group));
  if (!slots.empty()) {
    out.line();
    print_slots(out, slots);
  }
  if (!locks.empty()) {
    out.line();
    print_locks(out, locks);
  }
  return 0;
}

int remove(const domain_name& named, bool force, console& out) {
  try {
    if (named.remove(force)) {
      out.line("removed " + named.name);
      return 0;
    }
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::held) throw;
    throw refuse(named.argument, named.name, "a domain that no process uses, or --force");
  }
  static_cast<void>(named.attach());  // says that there is none, and what there is
  return 0;
}

/// "rsync (pid 4711) holds it", of the first holder or waiter; nothing if there is none.
std::string user_of_lock(const domain& in, const std::string& name) {
  const std::vector<lock_user> users =
      in.users_of(name, nullptr, std::chrono::milliseconds(0));  // the question is about this host
  if (users.empty()) return "";
  return user_text(users.front()) + " " + use_text(users.front());
}

int forget(const domain_name& named, const std::string& name, console& out) {
  domain in = named.attach();
  try {
    if (in.remove_lock(name)) {
      out.line(fmt::format("forgot {}", visible(name)));
      return 0;
    }
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::held) throw;
    std::string why = user_of_lock(in, name);
    // After "lock NAME: ".
    if (why.empty())
      why = std::string_view(e.what()).substr(std::string_view(e.what()).rfind(": ") + 2);
    throw refuse("NAME", name, "a lock that nobody holds or awaits; " + why);
  }
  throw refuse("NAME", name,
               fmt::format("a lock of the domain; {} lists them", command_that_shows(in)));
}

/// The arguments of a command. With --domain, the argument in DOMAIN's place is NAME.
struct words_of_domain {
  std::string action;
  std::optional<domain_name> domain;
  std::optional<std::string> lock;
};

words_of_domain words_from(const arguments& given) {
  const auto action = given.one("ACTION");
  if (!action) throw refuse("ACTION", "", joined(actions()));
  if (std::ranges::find(actions(), *action) == actions().end())
    throw unknown_name("ACTION", *action, actions());
  words_of_domain words{*action, std::nullopt, given.one("NAME")};
  const auto first = given.one("DOMAIN");
  if (*action == "forget" && given.has("--domain") && first && !words.lock) {
    words.lock = first;
    words.domain = domain_name_from(given.without("DOMAIN"), nullptr);
  } else {
    words.domain = domain_name_from(given, nullptr);
  }
  return words;
}

void check_options(const arguments& given, const words_of_domain& words) {
  const std::string& action = words.action;
  if (given.has("--force") && action != "remove")
    throw refuse("--force", action, "only with remove");
  if (given.has("--names") && (action != "list" || given.has("--json")))
    throw refuse("--names", action, "only with list, without --json");
  if (words.lock && action != "forget")
    throw refuse("NAME", *words.lock, "a lock only after forget DOMAIN");
  if (given.has("--json") && action != "list" && action != "show")
    throw refuse("--json", action, "only with list and show");
  if (action != "list") return;
  for (const char* const each : {"--mode", "--group"})
    if (given.has(each)) throw refuse(each, *given.one(each), "only with show, remove and forget");
  if (words.domain)
    throw refuse(words.domain->argument, words.domain->name,
                 "no name after list; show prints one domain");
}

int run_domain(const arguments& given, console& out) {
  const words_of_domain words = words_from(given);
  check_options(given, words);
  if (words.action == "list") return list(given, out);
  if (!words.domain)
    throw refuse("DOMAIN", "", "the name of a domain; 'lockflight domain list' has them");
  if (words.action == "show") return show(*words.domain, given.has("--json"), out);
  if (words.action == "remove") return remove(*words.domain, given.has("--force"), out);
  check_lock_name("NAME", words.lock.value_or(""));
  return forget(*words.domain, *words.lock, out);
}

}  // namespace

command domain_command() {
  return {
      .description =
          {"A domain is a file in memory that holds named locks, and slots for the threads that "
           "use them. 'list' names the domains that you can open. 'show' prints the participants "
           "and the locks of one domain. 'remove' removes a domain with all its locks. 'forget' "
           "forgets the lock NAME of a domain, unless somebody holds or awaits it; the next use "
           "of the name makes the lock anew.",
           "The JSON of list is {\"domains\": [{\"name\", \"participants\", \"slots\", \"locks\", "
           "\"names\", \"mode\"} or {\"name\", \"problem\"}]}, with a "
           "\"group\" if the mode is 0660. The JSON of show is {\"name\", "
           "\"slots\", \"names\", \"mode\", \"names_taken\", \"participants\": [{\"slot\", "
           "\"pid\", \"thread\", "
           "\"dead\", \"stopped\", \"guarded_pid\", \"command\"}], \"locks\": [LOCK...]}. A LOCK "
           "is that of 'lockflight who --json', which also explains \"foreign_pid\" and "
           "\"silent\".",
           json_of_bytes},
      .options = with_domain_options(
          {{.name = "ACTION",
            .what = "what to do: list, show, remove or forget",
            .completes = option::offer::words,
            .known = actions()},
           domain_argument("the domain to show or to remove, or that of the lock to forget, as "
                           "--domain"),
           {.name = "NAME",
            .what = "the lock to forget; one that begins with '-' comes after '--'",
            .optional = true}},
          {{.name = "--force",
            .what = "remove the domain though processes use it: those that hold a lock exclude "
                    "nobody who comes later, the others go on in the next domain of the name"},
           {.name = "--names", .what = "list only the names, one a line"},
           {.name = "--json", .what = "print one JSON document instead of the table"}},
          nullptr),
      .examples = {{"lockflight domain list", "list the domains"},
                   {"lockflight domain show default", "show the slots and locks of one domain"},
                   {"lockflight domain remove scratch", "remove a domain that no process uses"},
                   {"lockflight domain show work --mode 0660",
                    "show the group's domain, if you have one of that name, too"},
                   {"lockflight domain remove work --mode 0660 --group staff",
                    "remove that of the group staff, if several groups have one"},
                   {"lockflight domain forget default nightly",
                    "give back the memory of one lock"}},
      .run = run_domain,
  };
}

}  // namespace lockflight::cli
