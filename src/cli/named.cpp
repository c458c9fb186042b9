#include "cli/named.hpp"

#include <fmt/format.h>
#include <grp.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "base/number.hpp"
#include "base/visible_text.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace lockflight::cli {

// ---- naming ----

namespace {

constexpr unsigned of_group = 0660;

/// The error about a name that several domains have, with the options that choose each of them; the
/// same error if it is about something else.
domain_error which_is_meant(const domain_error& e, const domain_name& named) {
  std::vector<std::string> choices;
  for (const domain_owner& each : domain::owners_of(named.name))
    if (named.mode == 0 || each.mode == named.mode)
      choices.push_back(each.mode == of_group
                            ? fmt::format("--mode {:04o} --group {}", each.mode, each.group)
                            : fmt::format("--mode {:04o}", each.mode));
  if (e.why != domain_error::reason::disagrees || !named.group.empty() || choices.size() < 2)
    return e;
  return {e.why, fmt::format("domain {} exists more than once (accepted: {})",
                             in_quotes(named.name), joined(choices, " or "))};
}

/// That there is none, and what there is.
usage_error none_of(const domain_name& named) {
  std::vector<std::string> known = domain::list();
  if (named.mode == 0) std::erase(known, named.name);  // somebody has made it since
  if (known.empty())
    return refuse(named.argument, named.name,
                  "a domain that exists; 'lockflight run' makes one, none is there");
  if (std::ranges::find(known, named.name) == known.end())
    return unknown_name(named.argument, named.name, known);
  const std::string where =
      fmt::format("of domain {}; 'lockflight domain list' has it", in_quotes(named.name));
  return named.group.empty()
             ? refuse("--mode", fmt::format("{:04o}", named.mode), "the mode " + where)
             : refuse("--group", named.group, "the group " + where);
}

unsigned mode_from(const arguments& given) {
  const auto text = given.one("--mode");
  if (!text) return 0;
  if (text == "0600" || text == "600") return 0600;
  if (text == "0660" || text == "660") return of_group;
  throw refuse("--mode", *text, "0600 or 0660");
}

std::string group_from(const arguments& given, unsigned mode) {
  const auto text = given.one("--group");
  if (!text) return "";
  if (mode != of_group) throw refuse("--group", *text, "only with --mode 0660");
  if (!read_number<gid_t>(*text) && getgrnam(text->c_str()) == nullptr)
    throw refuse("--group", *text, "the name or the number of a group");
  return *text;
}

}  // namespace

domain domain_name::attach() const {
  try {
    return domain::attach(name, mode, group);
  } catch (const domain_error& e) {
    if (e.why != domain_error::reason::missing) throw which_is_meant(e, *this);
  }
  throw none_of(*this);
}

domain domain_name::open() const {
  try {
    return domain::open(name, {.mode = mode, .group = group});
  } catch (const domain_error& e) {
    throw which_is_meant(e, *this);
  }
}

bool domain_name::remove(bool force) const {
  try {
    return domain::remove(name, force, mode, group);
  } catch (const domain_error& e) {
    throw which_is_meant(e, *this);
  }
}

std::vector<option> with_domain_options(std::vector<option> before,
                                        const std::vector<option>& after) {
  const std::vector<option> ours{
      {.name = "--domain",
       .value = "D",
       .what = fmt::format("the domain of the lock (default: {}); etcd:D is a cluster's, which "
                           "holds on all its hosts",
                           default_domain),
       .completes = option::offer::domains},
      {.name = "--mode",
       .value = "MODE",
       .what = "the domain's mode, 0600 (its user's own) or 0660 (its group's); it tells which one "
               "is meant if you have both; 'run' makes a domain with it (default: 0600)",
       .completes = option::offer::words,
       .known = {"0600", "0660"}},
      {.name = "--group",
       .value = "G",
       .what = "with --mode 0660: the group of the domain, by name or number; it tells which one "
               "is meant if several groups have a domain of that name; 'run' makes a domain for it "
               "(default: your effective group)"}};
  before.insert(before.end(), ours.begin(), ours.end());
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

option domain_argument(std::string what) {
  return {.name = "DOMAIN",
          .what = std::move(what),
          .completes = option::offer::domains,
          .optional = true};
}

std::optional<domain_name> domain_name_from(const arguments& given, const char* by_default) {
  const auto argument = given.one("DOMAIN");
  const auto by_option = given.one("--domain");
  if (argument && by_option)
    throw refuse("--domain", *by_option,
                 fmt::format("--domain or DOMAIN, not both; DOMAIN is {}", in_quotes(*argument)));
  const unsigned mode = mode_from(given);
  const std::string group = group_from(given, mode);
  if (argument) return domain_name{"DOMAIN", *argument, mode, group};
  if (by_option) return domain_name{"--domain", *by_option, mode, group};
  if (by_default == nullptr) return std::nullopt;
  return domain_name{"--domain", by_default, mode, group};
}

void check_lock_name(const std::string& argument, const std::string& name) {
  if (!is_lock_name(name)) throw refuse(argument, name, "1 to 255 bytes without a new line");
}

// ---- locks and their users ----

std::vector<domain_lock> locks_on_all_hosts(const domain& in, std::vector<std::string>* silent) {
  std::vector<domain_lock> all = in.locks();
  domain_elsewhere there = in.elsewhere();
  if (silent != nullptr) *silent = std::move(there.silent);
  for (domain_lock& lock : there.locks) {
    // Of a lock that is used on other hosts alone no more is known.
    auto at = std::ranges::lower_bound(all, lock.name, {}, &domain_lock::name);
    if (at == all.end() || at->name != lock.name) at = all.insert(at, {.name = lock.name});
    std::ranges::move(lock.users, std::back_inserter(at->users));
    std::ranges::stable_sort(at->users, {}, [](const lock_user& each) {
      return std::tuple(each.waits(), ~each.for_ns);
    });
  }
  return all;
}

namespace {

std::size_t count_of_holders(std::span<const lock_user> users) {
  return static_cast<std::size_t>(std::ranges::find_if(users, &lock_user::waits) - users.begin());
}

}  // namespace

std::span<const lock_user> holders_of(std::span<const lock_user> users) {
  return users.first(count_of_holders(users));
}
std::span<const lock_user> waiters_of(std::span<const lock_user> users) {
  return users.subspan(count_of_holders(users));
}

double longest_wait_s(const domain_lock& lock) {
  const auto waiters = waiters_of(lock.users);
  return waiters.empty() ? 0 : seconds_of(waiters.front());
}

// ---- words ----

namespace {

/// As the field "use" of JSON has it.
const char* use_of(mode held) {
  return held == mode::exclusive ? "holds" : held == mode::shared ? "shares" : "waits";
}

}  // namespace

std::string word_of(const lock_user& user) {
  return user.unit < 0 ? use_of(user.held) : fmt::format("holds unit {}", user.unit);
}

std::string use_text(const lock_user& user) {
  return user.waits() ? "waits for it" : fmt::format("{} it", use_of(user.held));
}

std::string kind_of(const domain_lock& lock) {
  return lock.units == 0 ? lock.kind : fmt::format("{} of {}", lock.kind, lock.units);
}

std::string command_of(const lock_user& user) {
  const std::string name = visible(user.command);
  if (!user.host.empty()) return fmt::format("{} on {}", name, visible(user.host));
  return user.guarded_pid == 0 ? name : fmt::format("{} ({})", name, user.guarded_pid);
}

std::string user_text(const lock_user& user) {
  const std::string where = user.host.empty() ? "" : " on " + visible(user.host);
  const std::string state = state_text(user);
  if (user.command.empty())
    return fmt::format("process {}{}{}", user.running_pid(), where,
                       state.empty() ? "" : " (" + state + ")");
  return fmt::format("{}{} (pid {}{}{})", visible(user.command), where, user.running_pid(),
                     state.empty() ? "" : ", ", state);
}

std::string duration(double seconds) {
  constexpr int minute = 60;
  constexpr int hour = 3600;
  const auto whole = static_cast<long long>(seconds);
  if (seconds < minute) return fmt::format("{:.1f} s", seconds);
  if (whole < hour) return fmt::format("{} min {} s", whole / minute, whole % minute);
  return fmt::format("{} h {} min", whole / hour, whole % hour / minute);
}

// ---- JSON ----

double json_seconds(std::uint64_t ns) {
  constexpr std::uint64_t ns_of_ms = 1'000'000;
  return static_cast<double>(ns / ns_of_ms) / 1e3;
}

namespace {

using nlohmann::ordered_json;

ordered_json user_json(const lock_user& user) {
  ordered_json made{{"pid", user.pid},
                    {"slot", std::max(user.slot, 0)},
                    {"dead", user.dead},
                    {"stopped", user.stopped},
                    {"use", use_of(user.held)},
                    {"seconds", json_seconds(user.for_ns)},
                    {"guarded_pid", user.guarded_pid},
                    {"command", user.command}};
  if (user.has_foreign_pid) made["foreign_pid"] = true;
  if (user.unit >= 0) made["unit"] = user.unit;
  if (!user.host.empty()) made["host"] = user.host;
  return made;
}

void make_reversible(ordered_json& value) {
  if (value.is_structured())
    for (ordered_json& each : value) make_reversible(each);
  else if (value.is_string())
    value = reversible(value.get_ref<const std::string&>());
}

}  // namespace

void add_users(std::span<const lock_user> users, ordered_json& into) {
  into["holders"] = ordered_json::array();
  into["waiters"] = ordered_json::array();
  for (const lock_user& each : users)
    into[each.waits() ? "waiters" : "holders"].push_back(user_json(each));
}

ordered_json json_of(const domain_lock& lock) {
  ordered_json made{{"name", lock.name},         {"kind", lock.kind},
                    {"parameters", lock.parameters}, {"token", lock.token},
                    {"acquires", lock.acquires}, {"repairs", lock.repairs},
                    {"owner_died", lock.owner_died}};
  add_users(lock.users, made);
  if (lock.units > 0) made["units"] = lock.units;
  return made;
}

std::string json_text(ordered_json document, int indent) {
  make_reversible(document);
  const std::string text = document.dump(indent);
  // JSON needs no escapes for what is left of the control characters; terminals may obey them.
  // They are nowhere but in strings.
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view character = std::string_view(text).substr(
        i, std::max<std::size_t>(1, character_bytes(std::string_view(text).substr(i))));
    if (character != "\n" && is_control(character))
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(character.back()));
    else
      out += character;
    i += character.size();
  }
  return out;
}

}  // namespace lockflight::cli
