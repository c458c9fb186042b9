// lockflight domain: lists, shows and removes domains.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/commands.hpp"
#include "cli/guarded.hpp"
#include "cli/named.hpp"
#include "tool/printable.hpp"
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
  domain_options options;
  std::size_t participants = 0;
  std::uint32_t locks = 0;
  std::string problem;  ///< empty, or why the rest is not known
};

/// A domain may be removed while we read, or be of another version: that is no reason to end.
/// Nothing if there is none of that mode.
std::optional<summary> summary_of(const std::string& name, unsigned mode) {
  summary found;
  try {
    const domain in = domain::attach(name, mode);
    found.options = in.options();
    found.participants = in.participants().size();
    found.locks = in.names();
  } catch (const domain_error& e) {
    using enum domain_error::reason;
    const bool is_of_another_mode =
        e.why == disagrees &&
        std::string_view(e.what()).find("more than once") == std::string::npos;
    if (e.why == missing || is_of_another_mode) return std::nullopt;
    found.options.mode = mode;
    found.problem = printable(e.what());
  }
  return found;
}

/// The user may have two domains of a name, an own one and that of a group.
std::vector<summary> summaries_of(const std::string& name) {
  std::vector<summary> found;
  for (const unsigned mode : {0600u, 0660u})
    if (const auto one = summary_of(name, mode)) found.push_back(*one);
  return found;
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
               {.title = "", .numeric = false}});
  const auto add = [&](const std::string& name, const summary& s) {
    const std::string mode = fmt::format("{:04o}", s.options.mode);
    if (s.problem.empty()) {
      shown.add_row({{name},
                     {std::to_string(s.participants)},
                     {std::to_string(s.options.slots)},
                     {std::to_string(s.locks)},
                     {std::to_string(s.options.names)},
                     {mode},
                     {""}});
      all.push_back({{"name", name},
                     {"participants", s.participants},
                     {"slots", s.options.slots},
                     {"locks", s.locks},
                     {"names", s.options.names},
                     {"mode", mode}});
    } else {
      shown.add_row({{name}, {""}, {""}, {""}, {""}, {""}, {s.problem, style::bad}});
      all.push_back({{"name", name}, {"problem", s.problem}});
    }
  };
  for (const std::string& name : names)
    for (const summary& s : summaries_of(name)) add(name, s);
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
                   {printable(s.command)}});
  shown.print(out);
}

std::string pids(const std::vector<lock_user>& users) {
  std::vector<std::string> all;
  for (const lock_user& user : users) {
    const auto state = state_text(user);
    std::string one = user.host.empty() ? std::to_string(user.pid)
                                        : fmt::format("{}:{}", printable(user.host), user.pid);
    if (user.unit >= 0) one = fmt::format("{} (unit {})", one, user.unit);
    if (!state.empty()) one += fmt::format(" ({})", state);
    all.push_back(std::move(one));
  }
  return joined(all, " ");
}

void print_locks(console& out, const std::vector<lock_state>& states) {
  table shown({{.title = "lock", .numeric = false},
               {.title = "kind", .numeric = false},
               {.title = "token"},
               {.title = "repairs"},
               {.title = "held by", .numeric = false},
               {.title = "awaited by", .numeric = false},
               {.title = "", .numeric = false}});
  for (const lock_state& s : states)
    shown.add_row({{printable(s.lock.name)},
                   {kind_of(s.lock)},
                   {std::to_string(s.lock.token)},
                   {std::to_string(s.lock.repairs)},
                   {pids(s.holders)},
                   {pids(s.waiters)},
                   {s.lock.owner_died ? "a holder died" : "", style::bad}});
  shown.print(out);
}

int show(const std::string& name, const arguments& given, console& out) {
  const domain in = domain_named("DOMAIN", name, mode_of(given));
  const std::vector<domain_slot> slots = in.participants();
  const std::vector<lock_state> states = states_of(in);
  const domain_options& made = in.options();
  if (given.has("--json")) {
    ordered_json locks = ordered_json::array();
    for (const lock_state& s : states) locks.push_back(json_of(s));
    print_document(out, {{"name", in.name()},
                         {"slots", made.slots},
                         {"names", made.names},
                         {"mode", fmt::format("{:04o}", made.mode)},
                         {"names_taken", in.names()},
                         {"participants", slots_json(slots)},
                         {"locks", locks}});
    return 0;
  }
  // Names, as `list` counts them: a semaphore of N units takes up to N + 1.
  out.line(fmt::format("{}: {} of {} slots taken, {} of {} names taken, mode {:04o}", in.name(),
                       slots.size(), made.slots, in.names(), made.names, made.mode));
  if (!slots.empty()) {
    out.line();
    print_slots(out, slots);
  }
  if (!states.empty()) {
    out.line();
    print_locks(out, states);
  }
  return 0;
}

int remove(const std::string& name, const arguments& given, console& out) {
  try {
    if (domain::remove(name, given.has("--force"), mode_of(given))) {
      out.line("removed " + name);
      return 0;
    }
  } catch (const domain_error& e) {
    if (e.why == domain_error::reason::held)
      throw refuse("DOMAIN", name, "a domain that no process uses, or --force");
    if (e.why == domain_error::reason::disagrees && !given.has("--mode")) throw which_of_them(e);
    throw;
  }
  // Says that there is none, and what there is.
  (void)domain_named("DOMAIN", name, mode_of(given));
  return 0;
}

/// "rsync (pid 4711) holds it", of the first holder or waiter; nothing if there is none.
std::string user_of_lock(const domain& in, const std::string& name) {
  for (const lock_state& s : states_of(in))
    for (const auto* users : {&s.holders, &s.waiters})
      if (s.lock.name == name && !users->empty())
        return fmt::format("{} {} it", user_text(users->front()), word_of(users->front().what));
  return "";
}

int forget(const std::string& of, const std::string& name, const arguments& given, console& out) {
  domain in = domain_named("DOMAIN", of, mode_of(given));
  try {
    if (in.remove_lock(name)) {
      out.line(fmt::format("forgot {}", printable(name)));
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
               fmt::format("a lock of the domain; 'lockflight domain show {}' lists them", of));
}

int run_domain(const arguments& given, console& out) {
  const auto action = given.one("ACTION");
  if (!action) throw refuse("ACTION", "", joined(actions()));
  if (std::ranges::find(actions(), *action) == actions().end())
    throw unknown_name("ACTION", *action, actions());
  const auto name = given.one("DOMAIN");
  if (given.has("--force") && *action != "remove")
    throw refuse("--force", *action, "only with remove");
  if (given.has("--names") && (*action != "list" || given.has("--json")))
    throw refuse("--names", *action, "only with list, without --json");
  const auto lock = given.one("NAME");
  if (lock && *action != "forget") throw refuse("NAME", *lock, "a lock only after forget DOMAIN");
  if (*action == "list") {
    if (given.has("--mode"))
      throw refuse("--mode", *given.one("--mode"), "only with show, remove and forget");
    if (name) throw refuse("DOMAIN", *name, "no name after list; show prints one domain");
    return list(given, out);
  }
  if (!name) throw refuse("DOMAIN", "", "the name of a domain; 'lockflight domain list' has them");
  if (*action == "show") return show(*name, given, out);
  if (given.has("--json")) throw refuse("--json", *action, "only with list and show");
  if (*action == "remove") return remove(*name, given, out);
  check_lock_name("NAME", lock.value_or(""));
  return forget(*name, *lock, given, out);
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
           "\"names\", \"mode\"} or {\"name\", \"problem\"}]}. The JSON of show is {\"name\", "
           "\"slots\", \"names\", \"mode\", \"names_taken\", \"participants\": [{\"slot\", "
           "\"pid\", \"thread\", "
           "\"dead\", \"stopped\", \"guarded_pid\", \"command\"}], \"locks\": [LOCK...]}. A LOCK "
           "is that of 'lockflight who --json', which also explains \"foreign_pid\"."},
      .options = {{.name = "ACTION",
                   .what = "what to do: list, show, remove or forget",
                   .completes = option::offer::words,
                   .known = actions()},
                  {.name = "DOMAIN",
                   .what = "the domain to show or to remove, or that of the lock to forget",
                   .completes = option::offer::domains,
                   .optional = true},
                  {.name = "NAME", .what = "the lock to forget", .optional = true},
                  mode_option(),
                  {.name = "--force",
                   .what = "remove the domain though processes use it: those that hold a lock "
                           "exclude nobody who comes later, the others go on in the next domain of "
                           "the name"},
                  {.name = "--names", .what = "list only the names, one a line"},
                  {.name = "--json", .what = "print one JSON document instead of the table"}},
      .examples = {{"lockflight domain list", "list the domains"},
                   {"lockflight domain show default", "show the slots and locks of one domain"},
                   {"lockflight domain remove scratch", "remove a domain that no process uses"},
                   {"lockflight domain show work --mode 0660",
                    "show the group's domain, if you have one of that name, too"},
                   {"lockflight domain forget default nightly",
                    "give back the memory of one lock"}},
      .run = run_domain,
  };
}

}  // namespace lockflight::cli
