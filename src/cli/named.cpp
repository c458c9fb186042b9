#include "cli/named.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/clock.hpp"
#include "cli/guarded.hpp"
#include "tool/printable.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace lockflight::cli {
namespace {

/// The clock has moved on since the lock was read, or before it: never less than nothing.
double seconds_since(std::uint64_t then_ns, std::uint64_t now_ns) {
  if (then_ns == 0 || then_ns > now_ns) return 0;
  return static_cast<double>(now_ns - then_ns) * 1e-9;
}

lock_state state_of(domain_lock lock, const std::map<int, std::string>& commands,
                    std::uint64_t now_ns) {
  lock_state state;
  for (const domain_lock_use& use : lock.uses) {
    const auto command = commands.find(use.slot);
    const lock_user user{.pid = use.pid,
                         .slot = use.slot,
                         .dead = use.dead,
                         .stopped = use.stopped,
                         .guarded_pid = use.guarded_pid,
                         .what = use.what,
                         .seconds = seconds_since(use.since_ns, now_ns),
                         .command = command == commands.end() ? "" : command->second,
                         .unit = use.unit,
                         .has_foreign_pid = use.has_foreign_pid};
    const bool waits = use.what == domain_lock_use::how::waits;
    if (waits && use.dead) continue;  // nothing is left of it but a slot that a sweep frees
    (waits ? state.waiters : state.holders).push_back(user);
  }
  for (auto* users : {&state.holders, &state.waiters})
    std::ranges::stable_sort(*users, std::greater<>{}, &lock_user::seconds);
  state.lock = std::move(lock);
  return state;
}

}  // namespace

option domain_option() {
  return {.name = "--domain",
          .value = "D",
          .what = fmt::format("the domain of the lock (default: {}); etcd:D is a cluster's, which "
                              "holds on all its hosts",
                              default_domain),
          .completes = option::offer::domains};
}

option mode_option() {
  return {.name = "--mode",
          .value = "MODE",
          .what =
              "the domain's mode, 0600 (its user's own) or 0660 (its group's); it tells which "
              "one is meant if you have both",
          .completes = option::offer::words,
          .known = {"0600", "0660"}};
}

unsigned mode_of(const arguments& given) {
  const auto text = given.one("--mode");
  if (!text) return 0;
  if (text == "0600" || text == "600") return 0600;
  if (text == "0660" || text == "660") return 0660;
  throw refuse("--mode", *text, "0600 or 0660");
}

domain domain_named(const std::string& argument, const std::string& name, unsigned mode) {
  try {
    return domain::attach(name, mode);
  } catch (const domain_error& e) {
    using enum domain_error::reason;
    if (e.why == disagrees && mode == 0) throw which_of_them(e);
    if (e.why != missing) throw;
  }
  std::vector<std::string> known = domain::list();
  if (mode == 0) std::erase(known, name);  // somebody has made it since
  if (known.empty())
    throw refuse(argument, name, "a domain that exists; 'lockflight run' makes one, none is there");
  if (std::ranges::find(known, name) != known.end())
    throw refuse("--mode", fmt::format("{:04o}", mode),
                 fmt::format("the mode of domain {}; 'lockflight domain list' has it", name));
  throw unknown_name(argument, name, known);
}

void check_lock_name(const std::string& argument, const std::string& name) {
  if (!is_lock_name(name)) throw refuse(argument, name, "1 to 255 bytes without a new line");
}

lock_user user_of(const domain_use_elsewhere& use) {
  return {.pid = use.pid,
          .dead = use.dead,
          .stopped = use.stopped,
          .what = use.what,
          .seconds = static_cast<double>(use.milliseconds) / 1'000,
          .command = use.command,
          .host = use.host,
          .unit = use.unit,
          .has_foreign_pid = use.has_foreign_pid};
}

namespace {

/// Users on other hosts, and locks that are in use there alone.
void add_elsewhere(const domain_elsewhere& there, std::vector<lock_state>& to) {
  for (const domain_use_elsewhere& use : there.uses) {
    auto at = std::ranges::find(to, use.name,
                                [](const lock_state& s) -> const auto& { return s.lock.name; });
    if (at == to.end()) {
      lock_state made;
      made.lock.name = use.name;
      at = to.insert(to.end(), std::move(made));
    }
    (use.what == domain_lock_use::how::waits ? at->waiters : at->holders).push_back(user_of(use));
  }
  for (lock_state& state : to)
    for (auto* users : {&state.holders, &state.waiters})
      std::ranges::stable_sort(*users, std::greater<>{}, &lock_user::seconds);
}

}  // namespace

std::vector<lock_state> states_on_this_host(const domain& in) {
  std::map<int, std::string> commands;
  for (const domain_slot& slot : in.participants()) commands[slot.slot] = slot.command;
  std::vector<domain_lock> locks = in.locks();
  const std::uint64_t now_ns = lockflight::now_ns();
  std::vector<lock_state> states;
  states.reserve(locks.size());
  for (domain_lock& lock : locks) states.push_back(state_of(std::move(lock), commands, now_ns));
  return states;
}

std::vector<lock_state> states_of(const domain& in, std::vector<std::string>* silent) {
  std::vector<lock_state> states = states_on_this_host(in);
  const domain_elsewhere there = in.elsewhere();
  if (silent != nullptr) *silent = there.silent;
  add_elsewhere(there, states);
  std::ranges::sort(states, {}, [](const lock_state& s) -> const auto& { return s.lock.name; });
  return states;
}

std::string word_of(domain_lock_use::how what) {
  using enum domain_lock_use::how;
  return what == holds ? "holds" : what == shares ? "shares" : "waits";
}

std::string word_of(const lock_user& user) {
  return user.unit < 0 ? word_of(user.what) : fmt::format("holds unit {}", user.unit);
}

std::string kind_of(const domain_lock& lock) {
  return lock.units == 0 ? lock.kind : fmt::format("{} of {}", lock.kind, lock.units);
}

std::string command_of(const lock_user& user) {
  const std::string name = printable(user.command);
  if (!user.host.empty()) return fmt::format("{} on {}", name, printable(user.host));
  return user.guarded_pid == 0 ? name : fmt::format("{} ({})", name, user.guarded_pid);
}

std::string user_text(const domain_use_elsewhere& use) {
  std::string text = printable(use.command);
  if (!use.host.empty()) text += " on " + printable(use.host);
  text += " (pid " + std::to_string(use.pid);
  if (const auto state = state_text(use); !state.empty()) text += ", " + state;
  return text + ")";
}
std::string user_text(const lock_user& user) {
  return user_text({.host = user.host,
                    .name = "",
                    .what = user.what,
                    .pid = user.guarded_pid != 0 ? user.guarded_pid : user.pid,
                    .dead = user.dead,
                    .stopped = user.stopped,
                    .command = user.command,
                    .has_foreign_pid = user.has_foreign_pid});
}

std::string duration(double seconds) {
  constexpr int minute = 60;
  constexpr int hour = 3600;
  const auto whole = static_cast<long long>(seconds);
  if (seconds < minute) return fmt::format("{:.1f} s", seconds);
  if (whole < hour) return fmt::format("{} min {} s", whole / minute, whole % minute);
  return fmt::format("{} h {} min", whole / hour, whole % hour / minute);
}

nlohmann::ordered_json json_of(const lock_user& user) {
  nlohmann::ordered_json made{{"pid", user.pid},
                              {"slot", user.slot},
                              {"dead", user.dead},
                              {"stopped", user.stopped},
                              {"use", word_of(user.what)},
                              {"seconds", user.seconds},
                              {"guarded_pid", user.guarded_pid},
                              {"command", user.command}};
  if (user.has_foreign_pid) made["foreign_pid"] = true;
  if (user.unit >= 0) made["unit"] = user.unit;
  if (!user.host.empty()) made["host"] = user.host;
  return made;
}

nlohmann::ordered_json json_of(const lock_state& state) {
  nlohmann::ordered_json holders = nlohmann::ordered_json::array();
  nlohmann::ordered_json waiters = nlohmann::ordered_json::array();
  for (const lock_user& user : state.holders) holders.push_back(json_of(user));
  for (const lock_user& user : state.waiters) waiters.push_back(json_of(user));
  nlohmann::ordered_json made{{"name", state.lock.name},
                              {"kind", state.lock.kind},
                              {"parameters", state.lock.parameters},
                              {"token", state.lock.token},
                              {"acquires", state.lock.acquires},
                              {"repairs", state.lock.repairs},
                              {"owner_died", state.lock.owner_died},
                              {"holders", std::move(holders)},
                              {"waiters", std::move(waiters)}};
  if (state.lock.units > 0) made["units"] = state.lock.units;
  return made;
}

std::string json_text(const nlohmann::ordered_json& document, int indent) {
  const std::string text =
      document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
  // JSON needs no escapes for what is left of the control characters; terminals may obey them.
  // They are nowhere but in strings.
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = std::max<std::size_t>(1, character_bytes(text.substr(i, 4)));
    const std::string_view character = std::string_view(text).substr(i, bytes);
    if (character != "\n" && is_control(character))
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(character.back()));
    else
      out += character;
    i += bytes;
  }
  return out;
}

}  // namespace lockflight::cli
