#include "cli/named.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/numbers.hpp"
#include "base/visible_text.hpp"

namespace lockflight::cli {

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

std::size_t count_of_held(const domain_lock& lock) {
  if (lock.units == 0) return count_of_holders(lock.users);
  std::size_t count = 0;
  for (const lock_user& each : lock.users) count += each.units_held.size();
  return count;
}

double longest_wait_s(const domain_lock& lock) {
  const auto waiters = waiters_of(lock.users);
  return waiters.empty() ? 0 : seconds_of(waiters.front());
}

// ---- words ----

std::string word_of(const lock_user& user) {
  if (user.units_held.empty()) return user.use();
  return fmt::format("{} {} {}", user.waits() ? "waits with" : "holds",
                     user.units_held.size() == 1 ? "unit" : "units",
                     numbers_text(user.units_held, ", "));
}

std::string use_text(const lock_user& user) {
  return user.waits() ? "waits for it" : fmt::format("{} it", user.use());
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

std::string circle_text(const lock_circle& circle) {
  std::string text;
  for (const circle_member& each : circle) {
    const std::string inside =
        each.holder.pid == each.user.pid && each.holder.slot == each.user.slot
            ? " and"
            : ", and inside of it " + user_text(each.user);
    text += fmt::format("{}{} holds {}{} waits for {}", text.empty() ? "" : "; ",
                        user_text(each.holder), in_quotes(each.holds), inside,
                        in_quotes(each.waits_for));
  }
  return text;
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

using nlohmann::ordered_json;

ordered_json user_json(const lock_user& user) {
  ordered_json made{{"pid", user.pid},
                    {"slot", std::max(user.slot, 0)},
                    {"dead", user.dead},
                    {"stopped", user.stopped},
                    {"use", user.use()},
                    {"seconds", json_seconds(user.for_ns)},
                    {"guarded_pid", user.guarded_pid},
                    {"command", user.command}};
  if (user.has_foreign_pid) made["foreign_pid"] = true;
  if (user.unit >= 0) made["unit"] = user.unit;
  if (!user.units_held.empty()) made["units_held"] = user.units_held;
  if (!user.host.empty()) made["host"] = user.host;
  if (user.ending.why != end_reason::none) {
    made["ends_in"] = json_seconds(nanoseconds_of(user.ending.in));
    made["ends_by"] = user.ending.why == end_reason::limit    ? "limit"
                      : user.ending.why == end_reason::broken ? "broken"
                                                              : "released";
  }
  if (user.waits() && user.priority != 0) made["priority"] = user.priority;
  if (user.kept_token != 0) {
    made["token"] = user.kept_token;
    made["note"] = user.note;
  }
  return made;
}

namespace {

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
  ordered_json made{{"name", lock.name},
                    {"kind", lock.kind},
                    {"parameters", lock.parameters},
                    {"token", lock.token},
                    {"acquires", lock.acquires},
                    {"repairs", lock.repairs},
                    {"owner_died", lock.owner_died}};
  add_users(lock.users, made);
  if (lock.units > 0) made["units"] = lock.units;
  return made;
}

ordered_json json_of(const lock_circle& circle) {
  ordered_json made = ordered_json::array();
  for (const circle_member& each : circle) {
    made.push_back(user_json(each.user));
    made.back()["holds"] = each.holds;
    made.back()["waits_for"] = each.waits_for;
  }
  return made;
}

std::string json_text(ordered_json document, int indent) {
  make_reversible(document);
  const std::string text = document.dump(indent);
  // JSON needs no escapes for what is left of the control characters; terminals may obey them.
  // Control characters are nowhere but in strings.
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
