#include "cli/domain_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/group_number.hpp"
#include "base/joined.hpp"
#include "base/visible_text.hpp"
#include "tool/usage.hpp"

namespace lockflight::cli {

namespace {

constexpr unsigned of_group = 0660;

/// The options that choose each of the domains of a name.
std::vector<std::string> choices_of(const domain_name& named) {
  std::vector<std::string> choices;
  for (const domain_owner& each : domain::owners_of(named.name))
    if (named.mode == 0 || each.mode == named.mode)
      choices.push_back(each.mode == of_group
                            ? fmt::format("--mode {:04o} --group {}", each.mode, each.group)
                            : fmt::format("--mode {:04o}", each.mode));
  return choices;
}

/// The error about a name that several domains have, with the options that choose each of them. An
/// error about something else is returned as it is.
domain_error which_is_meant(const domain_error& e, const domain_name& named) {
  const std::vector<std::string> choices = choices_of(named);
  if (e.why != domain_error::reason::disagrees || !named.group.empty() || choices.size() < 2)
    return e;
  return {e.why, fmt::format("domain {} exists more than once (accepted: {})",
                             in_quotes(named.name), joined(choices, " or "))};
}

/// The error that there is no such domain, with the domains that there are.
usage_error none_of(const domain_name& named) {
  std::vector<std::string> known = domain::list();
  // Without a mode, root's commands use no domain of a group that root is not in.
  if (const auto choices = choices_of(named); named.mode == 0 && !choices.empty())
    return refuse(named.argument, named.name, "with " + joined(choices, " or "));
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
  if (!group_number(*text)) throw refuse("--group", *text, accepted_group);
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
                                        const std::vector<option>& after, const char* by_default) {
  const std::string else_this =
      by_default == nullptr ? "" : fmt::format(" (default: {})", by_default);
  const std::vector<option> ours{
      {.name = "--domain",
       .value = "D",
       .what = fmt::format("the domain{}; etcd:D is a cluster's, which holds on all its hosts",
                           else_this),
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

std::string command_that_shows(const domain& in) {
  const domain_options& made = in.options();
  return fmt::format("'lockflight domain show {}{}'", in.name(),
                     made.mode == of_group ? " --mode 0660 --group " + made.group : "");
}

void check_lock_name(const std::string& argument, const std::string& name) {
  if (!is_lock_name(name)) throw refuse(argument, name, "1 to 255 bytes without a new line");
}

}  // namespace lockflight::cli
