// lockflight units: the units of a semaphore, their holders, and a change of these units.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/visible_text.hpp"
#include "cli/commands.hpp"
#include "cli/domain_name.hpp"
#include "cli/named.hpp"
#include "cli/unit_options.hpp"
#include "tool/table.hpp"
#include "tool/usage.hpp"

namespace lockflight::cli {
namespace {

using nlohmann::ordered_json;

/// A semaphore on all hosts.
struct units_shown {
  semaphore_units has;
  domain_lock lock;
  std::vector<std::string> silent;
  std::map<int, const lock_user*> holders;  // of each unit; null: it is free

  [[nodiscard]] bool exists(int unit) const { return std::ranges::count(has.numbers, unit) != 0; }
};

units_shown read(const domain& in, const std::string& name) {
  units_shown now{.has = in.units_of(name), .lock = {.name = name}, .silent = {}, .holders = {}};
  for (domain_lock& each : in.locks_on_all_hosts(&now.silent))
    if (each.name == name) now.lock = std::move(each);
  for (const int unit : now.has.numbers) now.holders.emplace(unit, nullptr);
  for (const lock_user& user : now.lock.users)
    for (const int unit : user.units_held) now.holders[unit] = &user;
  return now;
}

const char* state_of(const units_shown& now, int unit, const lock_user* holder) {
  if (holder == nullptr) return "free";
  if (!now.exists(unit)) return "left out";
  return holder->waits() ? "collected" : "held";
}

void print(console& out, const units_shown& now) {
  const std::string silence = silence_text(now.silent);
  if (!silence.empty()) out.line(out.paint(style::bad, silence + ": more units may be held"));
  table shown({{.title = "unit"},
               {.title = "", .numeric = false},
               {.title = "for"},
               {.title = "process", .numeric = false}});
  for (const auto& [unit, holder] : now.holders)
    shown.add_row({{std::to_string(unit)},
                   {state_of(now, unit, holder), now.exists(unit) ? style::plain : style::bad},
                   {holder == nullptr ? "" : duration(seconds_of(*holder))},
                   {holder == nullptr ? "" : user_text(*holder)}});
  shown.print(out);
}

ordered_json json_of(const units_shown& now, const std::string& domain) {
  ordered_json all{{"name", now.lock.name}, {"domain", domain}, {"set", now.has.are_set}};
  all["units"] = ordered_json::array();
  for (const auto& [unit, holder] : now.holders) {
    ordered_json one{{"unit", unit}, {"exists", now.exists(unit)}};
    if (holder != nullptr) one["holder"] = user_json(*holder);
    all["units"].push_back(std::move(one));
  }
  if (!now.silent.empty()) all["silent"] = now.silent;
  return all;
}

int run_units(const arguments& given, console& out) {
  const std::string name = given.one("NAME").value_or("");
  check_lock_name("NAME", name);
  const domain_name where = *domain_name_from(given);
  const auto set = given.one("--set");
  domain in = set ? where.open() : where.attach();
  if (set) in.set_units(name, units_from("--set", *set));
  const units_shown now = read(in, name);
  if (given.has("--json"))
    out.line(json_text(json_of(now, where.name), 2));
  else if (now.holders.empty())
    out.line(
        fmt::format("{} has no units: no semaphore of that name has been used", in_quotes(name)));
  else
    print(out, now);
  return now.holders.empty() ? 1 : 0;
}

}  // namespace

command units_command() {
  return {
      .description =
          {"Shows the units of a semaphore, which 'lockflight run --units' makes, and who holds "
           "each. A unit is free, held, or collected by a waiter with --take. A unit that is left "
           "out is held, and does not exist any more.",
           "With --set the semaphore has other units from now on: 6 stands for 0 to 5, and 0,1,3 "
           "for these three. No holder is interrupted: a unit that is left out is given to nobody "
           "any more, and its holder ends by itself. Runs that wait see new units at once; in a "
           "cluster's domain, on each host within about a second.",
           "Once the units were set, those that runs and programs give for this name do not count, "
           "so that no script has to change. 'lockflight domain forget' ends that on one machine. "
           "A run that takes more than there are ends with an error.",
           "The JSON is {\"name\", \"domain\", \"set\": whether --set has chosen the units, "
           "\"units\": [{\"unit\", \"exists\", \"holder\": USER}...]}, with \"silent\" and each "
           "USER as in 'lockflight who --json'. A unit that is free has no \"holder\".",
           json_of_bytes},
      .options = with_domain_options(
          {{.name = "NAME", .what = "the semaphore; one that begins with '-' comes after '--'"},
           domain_argument("the domain of the semaphore, as --domain")},
          {{.name = "--set",
            .value = units_value,
            .what = "change the units: 6 for 0 to 5, or a list such as 0,1,3; '3,' for unit 3 "
                    "alone"},
           {.name = "--json", .what = "print one JSON document instead of the table"}}),
      .examples = {{"lockflight units gpu", "show which GPUs are in use, and by whom"},
                   {"lockflight units gpu --set 0,1,3", "take GPU 2 out: its job ends by itself"},
                   {"lockflight units licences --set 40 --domain etcd:site",
                    "change how many licences all hosts of the cluster share"}},
      .exit_codes = {{0, "the semaphore has units"},
                     {1, "no semaphore of that name has been used or set"},
                     {2, "bad usage or input; one line on standard error says what is accepted"},
                     {3, "the environment failed, such as an etcd that does not answer"}},
      .run = run_units,
  };
}

}  // namespace lockflight::cli
