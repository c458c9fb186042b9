// lockflight domain: lists, shows and removes domains.
#include <fmt/format.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cli/named.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "cli/usage.hpp"

namespace lockflight::cli {
namespace {

using nlohmann::ordered_json;

const std::vector<std::string>& actions() {
  static const std::vector<std::string> known{"list", "show", "remove"};
  return known;
}

void print_document(console& out, const ordered_json& document) {
  out.line(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

struct summary {
  domain_options options;
  std::size_t participants = 0;
  std::uint32_t locks = 0;
  std::string problem;  ///< empty, or why the rest is not known
};

/// A domain may be removed while we read, or be of another version: that is no reason to end.
summary summary_of(const std::string& name) {
  summary found;
  try {
    const domain in = domain::attach(name);
    found.options = in.options();
    found.participants = in.participants().size();
    found.locks = in.names();
  } catch (const domain_error& e) {
    found.problem = one_line(e.what());
  }
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
               {.title = "locks"},
               {.title = "of"},
               {.title = "mode"},
               {.title = "", .numeric = false}});
  for (const std::string& name : names) {
    const summary s = summary_of(name);
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
  }
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
  for (const domain_slot& s : slots)
    all.push_back({{"slot", s.slot},
                   {"pid", s.pid},
                   {"thread", s.thread},
                   {"dead", s.dead},
                   {"command", s.command}});
  return all;
}

void print_slots(console& out, const std::vector<domain_slot>& slots) {
  table shown({{.title = "slot"},
               {.title = "pid"},
               {.title = "thread"},
               {.title = "", .numeric = false},
               {.title = "command", .numeric = false}});
  for (const domain_slot& s : slots)
    shown.add_row({{std::to_string(s.slot)},
                   {std::to_string(s.pid)},
                   {std::to_string(s.thread)},
                   {s.dead ? "dead" : "", style::bad},
                   {s.command}});
  shown.print(out);
}

std::string pids(const std::vector<lock_user>& users) {
  std::vector<std::string> all;
  for (const lock_user& user : users) all.push_back(std::to_string(user.pid));
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
    shown.add_row({{one_line(s.lock.name)},
                   {s.lock.kind + (s.lock.parameters.empty() ? "" : " " + s.lock.parameters)},
                   {std::to_string(s.lock.token)},
                   {std::to_string(s.lock.repairs)},
                   {pids(s.holders)},
                   {pids(s.waiters)},
                   {s.lock.owner_died ? "a holder died" : "", style::bad}});
  shown.print(out);
}

int show(const std::string& name, const arguments& given, console& out) {
  const domain in = domain_named("DOMAIN", name);
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
                         {"participants", slots_json(slots)},
                         {"locks", locks}});
    return 0;
  }
  out.line(fmt::format("{}: {} of {} slots taken, {} of {} locks made, mode {:04o}", in.name(),
                       slots.size(), made.slots, states.size(), made.names, made.mode));
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
    if (domain::remove(name, given.has("--force"))) {
      out.line("removed " + name);
      return 0;
    }
  } catch (const domain_error& e) {
    if (e.why == domain_error::reason::held)
      throw refuse("DOMAIN", name, "a domain that no process uses, or --force");
    throw;
  }
  (void)domain_named("DOMAIN", name);  // says that there is none, and what there is
  return 0;
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
  if (*action == "list") {
    if (name) throw refuse("DOMAIN", *name, "no name after list; show prints one domain");
    return list(given, out);
  }
  if (!name) throw refuse("DOMAIN", "", "the name of a domain; 'lockflight domain list' has them");
  if (*action == "show") return show(*name, given, out);
  if (given.has("--json")) throw refuse("--json", *action, "only with list and show");
  return remove(*name, given, out);
}

}  // namespace

command domain_command() {
  return {
      .name = "domain",
      .summary = "list, show or remove domains of named locks",
      .description =
          {"A domain is a file in memory that holds named locks, and slots for the threads that "
           "use them. 'list' names the domains that you can open, 'show' prints the participants "
           "and the locks of one, 'remove' removes one with all its locks.",
           "JSON of list: {\"domains\": [{\"name\", \"participants\", \"slots\", \"locks\", "
           "\"names\", \"mode\"} or {\"name\", \"problem\"}]}. JSON of show: {\"name\", \"slots\", "
           "\"names\", \"mode\", \"participants\": [{\"slot\", \"pid\", \"thread\", \"dead\", "
           "\"command\"}], \"locks\": [LOCK...]}, LOCK as of 'lockflight who --json'."},
      .options = {{.name = "ACTION",
                   .what = "list, show or remove",
                   .completes = option::offer::words,
                   .known = actions()},
                  {.name = "DOMAIN",
                   .what = "the domain to show or to remove",
                   .completes = option::offer::domains,
                   .optional = true},
                  {.name = "--force",
                   .what = "remove it though processes use it; those go on with the removed file, "
                           "and exclude nobody who comes later"},
                  {.name = "--names", .what = "list only the names, one a line"},
                  {.name = "--json", .what = "print one JSON document instead"}},
      .examples = {{"lockflight domain list", "the domains"},
                   {"lockflight domain show default", "the slots and locks of one"},
                   {"lockflight domain remove scratch", "remove one that no process uses"}},
      .run = run_domain,
  };
}

}  // namespace lockflight::cli
