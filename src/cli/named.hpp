// What the commands on named locks have in common: domains by name, and what they say of locks.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "lockflight/domain.hpp"

namespace lockflight::cli {

/// The option --domain, as all commands have it that name a lock.
[[nodiscard]] option domain_option();

/// The option --mode, which tells a user's own domain from a group's of the same name.
[[nodiscard]] option mode_option();
/// The value of --mode; 0 if it is not given. Throws usage_error.
[[nodiscard]] unsigned mode_of(const arguments& given);

/// A domain that exists, with that mode unless it is 0. Throws usage_error, which names the
/// nearest.
[[nodiscard]] domain domain_named(const std::string& argument, const std::string& name,
                                  unsigned mode);

/// Throws usage_error unless a lock may be called so.
void check_lock_name(const std::string& argument, const std::string& name);

/// A participant that holds a lock or waits for it.
struct lock_user {
  int pid = 0;
  int slot = 0;
  bool dead = false;
  bool stopped = false;
  int guarded_pid = 0;  ///< the command that it runs; 0: none
  domain_lock_use::how what = domain_lock_use::how::waits;
  double seconds = 0;  ///< for so long
  std::string command;
  std::string host = "";         ///< another one of the cluster; empty: this one
  int unit = -1;                 ///< of a semaphore, which it holds; -1: none
  bool has_foreign_pid = false;  ///< its numbers are those of another PID namespace
};

/// What is known of a participant that may be on another host: its slot and guarded_pid are 0.
[[nodiscard]] lock_user user_of(const domain_use_elsewhere& use);

struct lock_state {
  domain_lock lock;
  std::vector<lock_user> holders;
  std::vector<lock_user> waiters;  ///< longest first

  [[nodiscard]] bool in_use() const { return !holders.empty() || !waiters.empty(); }
  [[nodiscard]] double longest_wait_s() const {
    return waiters.empty() ? 0 : waiters.front().seconds;
  }
};

/// All locks of the domain on this host now, in no order.
[[nodiscard]] std::vector<lock_state> states_on_this_host(const domain& in);
/// All locks of the domain now, by name. In a cluster's domain, those of a lock's users that are on
/// other hosts as well; `silent` gets the hosts that did not answer.
[[nodiscard]] std::vector<lock_state> states_of(const domain& in,
                                                std::vector<std::string>* silent = nullptr);

/// "holds", "shares", "waits".
[[nodiscard]] std::string word_of(domain_lock_use::how what);
/// The same of a user; the holder of a unit of a semaphore "holds unit 2".
[[nodiscard]] std::string word_of(const lock_user& user);
/// "flight-rw", "semaphore of 3".
[[nodiscard]] std::string kind_of(const domain_lock& lock);
/// What is to be said of a participant besides its numbers: "dead", "stopped", "in another PID
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
[[nodiscard]] std::string user_text(const domain_use_elsewhere& use);
[[nodiscard]] std::string user_text(const lock_user& user);
/// "1.5 s", "2 h 5 min".
[[nodiscard]] std::string duration(double seconds);

[[nodiscard]] nlohmann::ordered_json json_of(const lock_user& user);
[[nodiscard]] nlohmann::ordered_json json_of(const lock_state& state);
/// The document as text without control characters; -1: in one line.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& document, int indent);

}  // namespace lockflight::cli
