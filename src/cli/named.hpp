// Texts and JSON of a lock and of its users, for the commands on named locks.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockflight/domain.hpp"

namespace lockflight::cli {

[[nodiscard]] std::span<const lock_user> holders_of(std::span<const lock_user> users);
[[nodiscard]] std::span<const lock_user> waiters_of(std::span<const lock_user> users);
[[nodiscard]] inline double seconds_of(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1e9;
}
[[nodiscard]] inline double seconds_of(const lock_user& user) {
  return static_cast<double>(user.for_ns) / 1e9;
}
/// The number of holders of the lock, or of units of the semaphore that are held.
[[nodiscard]] std::size_t count_of_held(const domain_lock& lock);
/// The longest wait of a user of the lock; 0 if no user waits.
[[nodiscard]] double longest_wait_s(const domain_lock& lock);

// ---- words ----

/// The column of lock names in a table: a name may have 255 bytes.
constexpr int widest_name = 40;

/// "holds", "shares", "waits"; of a semaphore "holds unit 2", "holds units 0, 3", "waits with unit
/// 1".
[[nodiscard]] std::string word_of(const lock_user& user);
/// "holds it", "shares it", "waits for it".
[[nodiscard]] std::string use_text(const lock_user& user);
/// "flight-rw", "semaphore of 3".
[[nodiscard]] std::string kind_of(const domain_lock& lock);
/// The state of a participant, for a text that has its numbers: "dead", "stopped", "in another PID
/// namespace", two of these with a comma, or nothing.
template <class Participant>
[[nodiscard]] std::string state_text(const Participant& of) {
  std::string text = of.dead ? "dead" : of.stopped ? "stopped" : "";
  if (of.has_foreign_pid)
    text += text.empty() ? "in another PID namespace" : ", in another PID namespace";
  return text;
}
/// The process that runs, for a terminal: "rsync", or "rsync (4711)" if it is not the participant.
[[nodiscard]] std::string command_of(const lock_user& user);
/// "rsync on host7 (pid 4711, stopped)": the process of the command, if it is not the participant.
/// The name is not known where there is no /proc: "process 4711 (stopped)".
[[nodiscard]] std::string user_text(const lock_user& user);
/// "rsync (pid 1) holds 'a' and waits for 'b'; cp (pid 2) holds 'b' and waits for 'a'".
[[nodiscard]] std::string circle_text(const lock_circle& circle);
/// "1.5 s", "2 h 5 min".
[[nodiscard]] std::string duration(double seconds);

// ---- JSON ----

/// The time in seconds, to the millisecond.
[[nodiscard]] double json_seconds(std::uint64_t ns);
[[nodiscard]] nlohmann::ordered_json user_json(const lock_user& user);
/// Adds "holders": […] and "waiters": […] to the object `into`.
void add_users(std::span<const lock_user> users, nlohmann::ordered_json& into);
[[nodiscard]] nlohmann::ordered_json json_of(const domain_lock& lock);
/// An array of the members: each is a user, with the names that it "holds" and "waits_for".
[[nodiscard]] nlohmann::ordered_json json_of(const lock_circle& circle);
/// The document as text without control characters, its strings as `reversible` makes them; -1: in
/// one line.
[[nodiscard]] std::string json_text(nlohmann::ordered_json document, int indent);

/// For help: how strings of JSON say bytes that are not UTF-8.
inline constexpr const char* json_of_bytes =
    "In all JSON, a byte of a name that is not UTF-8 is \\xHH, with two hexadecimal digits, and the "
    "backslash of a \\xHH that is in the name itself is \\x5c: so no two names look the same.";

}  // namespace lockflight::cli
