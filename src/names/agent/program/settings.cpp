#include "names/agent/program/settings.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "base/group_number.hpp"
#include "base/replaced_file.hpp"
#include "names/agent/link/address.hpp"
#include "names/file/place.hpp"
#include "toml/strict.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"
#include "tool/values.hpp"

namespace lockflight::agents {
namespace {

using tool::arguments;
using tool::refuse;

constexpr const char* usual_file = "/etc/lockflight/agent.toml";

/// The options that a file may have.
const std::vector<std::string>& file_options() {
  static const std::vector<std::string> known{
      "--etcd", "--domain", "--listen",        "--advertise", "--host",  "--ttl",
      "--keep", "--user",   "--password-file", "--ca",        "--cert",  "--key",
      "--mode", "--group",  "--slots",         "--names",     "--state", "--metrics"};
  return known;
}

std::string key_of(const std::string& option) {
  std::string key = option.substr(2);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

/// A value, and where it comes from, for messages.
struct setting {
  std::string from;
  std::string text;
};

class settings {
 public:
  explicit settings(const arguments& given) {
    for (const std::string& option : file_options())
      if (const auto text = given.one(option)) all_.emplace(option, setting{option, *text});
    const auto file = given.one("--config");
    if (file || std::filesystem::exists(usual_file)) read(file.value_or(usual_file));
  }

  [[nodiscard]] const setting* find(const std::string& option) const {
    const auto at = all_.find(option);
    return at == all_.end() ? nullptr : &at->second;
  }
  [[nodiscard]] std::string text(const std::string& option, const std::string& otherwise) const {
    const setting* const found = find(option);
    return found == nullptr ? otherwise : found->text;
  }

 private:
  void read(const std::string& path) {
    std::ifstream in(path);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    if (!in)
      throw refuse("--config", path,
                   std::string("a file that can be read: ") + std::strerror(errno));
    const std::string text = bytes.str();
    const toml::table root = strict_toml::parsed<tool::usage_error>(text, path);
    strict_toml::table<tool::usage_error> table(root, path);
    for (const std::string& option : file_options()) {
      const std::string key = key_of(option);
      if (!table.has(key)) continue;
      // The command line comes first.
      all_.emplace(option, setting{path + ": " + key, value_of(table, key)});
    }
    table.finish();
  }

  static std::string value_of(strict_toml::table<tool::usage_error>& table,
                              const std::string& key) {
    const toml::node& found = table.needed(key);
    if (const auto text = found.value_exact<std::string>()) return *text;
    if (const auto whole = found.value_exact<std::int64_t>()) return std::to_string(*whole);
    if (const auto real = found.value_exact<double>()) return fmt::format("{}", *real);
    if (key == "etcd" && found.is_array()) {
      std::string all;
      for (const toml::node& each : *found.as_array()) {
        const auto text = each.value_exact<std::string>();
        if (!text) table.refuse(found, key, "an array of strings");
        all += (all.empty() ? "" : ",") + *text;
      }
      return all;
    }
    table.refuse(found, key, key == "etcd" ? "an array of strings" : "a string or a number");
  }

  std::map<std::string, setting> all_;
};

cluster::etcd_options etcd_from(const settings& from) {
  cluster::etcd_options made;
  const setting* const urls = from.find("--etcd");
  if (urls == nullptr)
    throw refuse("--etcd", "",
                 "the URLs of etcd, such as http://10.0.0.1:2379, here or in the file");
  made.endpoints = tool::words(urls->from, urls->text, "URLs, separated by commas");
  for (const std::string& each : made.endpoints)
    if (!cluster::is_endpoint(each))
      throw refuse(urls->from, each, "http://HOST:PORT or https://HOST:PORT");
  made.user = from.text("--user", "");
  if (const setting* const file = from.find("--password-file")) {
    made.password_file = file->text;
    made.password = cluster::password_in(file->text);
    if (made.password.empty()) throw refuse(file->from, file->text, "a file with a password");
  }
  if (const setting* const user = from.find("--user"); user != nullptr && made.password.empty())
    throw refuse(user->from, user->text, "with --password-file");
  made.tls.authority = from.text("--ca", "");
  made.tls.certificate = from.text("--cert", "");
  made.tls.key = from.text("--key", "");
  for (const char* const option : {"--ca", "--cert", "--key"})
    if (const setting* const file = from.find(option);
        file != nullptr && access(file->text.c_str(), R_OK) != 0)
      throw refuse(file->from, file->text,
                   std::string("a file that can be read: ") + std::strerror(errno));
  return made;
}

void check_address(const setting& given, bool is_to_listen) {
  const auto parts = cluster::link::split_address(given.text);
  if (parts && (is_to_listen || parts->port != 0)) return;
  throw refuse(given.from, given.text, "HOST:PORT, with brackets around an IPv6 address");
}

unsigned mode_from(const settings& from) {
  const setting* const given = from.find("--mode");
  if (given == nullptr) return 0;
  if (given->text == "0600" || given->text == "600") return 0600;
  if (given->text == "0660" || given->text == "660") return 0660;
  throw refuse(given->from, given->text, "0600 or 0660");
}

domain_options file_from(const settings& from) {
  constexpr int least_slots = 3;  // two of them are the agent's
  constexpr int most_slots = 4095;
  constexpr std::uint32_t most_names = 1'048'576;
  domain_options made;
  made.mode = mode_from(from);
  if (const setting* const group = from.find("--group")) {
    if (made.mode != 0660) throw refuse(group->from, group->text, "only with --mode 0660");
    if (!group_number(group->text)) throw refuse(group->from, group->text, accepted_group);
    made.group = group->text;
  }
  if (const setting* const slots = from.find("--slots"))
    made.slots =
        static_cast<int>(tool::whole_number(slots->from, slots->text, least_slots, most_slots));
  if (const setting* const names = from.find("--names"))
    made.names =
        static_cast<std::uint32_t>(tool::whole_number(names->from, names->text, 1, most_names));
  return made;
}

std::string state_folder_from(const settings& from) {
  if (const setting* const given = from.find("--state")) return given->text;
  if (const char* const of_service = secure_getenv("STATE_DIRECTORY")) return of_service;
  if (geteuid() == 0) return "/var/lib/lockflight";
  if (const char* const state = secure_getenv("XDG_STATE_HOME"))
    return std::string(state) + "/lockflight";
  const passwd* const user = getpwuid(geteuid());
  if (user == nullptr || user->pw_dir == nullptr)
    throw refuse("--state", "", "a folder, as this user has no home");
  return std::string(user->pw_dir) + "/.local/state/lockflight";
}

std::string domain_in(const settings& from) {
  const setting* const given = from.find("--domain");
  if (given == nullptr) return "default";
  try {
    detail::check_domain_name(given->text);
  } catch (const domain_error&) {
    throw refuse(given->from, given->text, "1 to 64 of a-z, A-Z, 0-9, '.', '_', '-', no '.' first");
  }
  // The name that clients use means the same domain here.
  const bool is_as_clients_name_it = detail::is_cluster_name(given->text);
  return is_as_clients_name_it ? given->text.substr(detail::cluster_prefix.size()) : given->text;
}

}  // namespace

std::string domain_from(const arguments& given) { return domain_in(settings(given)); }

cluster::agent_options settings_from(const arguments& given) {
  const settings from(given);
  cluster::agent_options made;
  made.domain = domain_in(from);
  made.etcd = etcd_from(from);
  made.listen = from.text("--listen", made.listen);
  made.advertise = from.text("--advertise", "");
  made.host = from.text("--host", "");
  if (const setting* const listen = from.find("--listen")) check_address(*listen, true);
  if (const setting* const advertise = from.find("--advertise"))
    check_address(*advertise, false);
  else if (made.listen.ends_with(":0"))
    throw refuse("--listen", made.listen, "a port from 1 to 65535, or --advertise beside port 0");
  if (const setting* const ttl = from.find("--ttl")) {
    constexpr double ms = 1'000;
    made.ttl = std::chrono::milliseconds(static_cast<std::int64_t>(
        tool::seconds_number(ttl->from, ttl->text,
                             static_cast<double>(cluster::least_ttl.count()) / ms,
                             static_cast<double>(cluster::most_ttl.count()) / ms) *
        ms));
  }
  if (const setting* const keep = from.find("--keep")) {
    constexpr double most_seconds = 1e9;
    constexpr double ms = 1'000;
    made.keep = std::chrono::milliseconds(static_cast<std::int64_t>(
        tool::seconds_number(keep->from, keep->text, 0, most_seconds) * ms));
  }
  made.file = file_from(from);
  made.state_folder = state_folder_from(from);
  if (const setting* const metrics = from.find("--metrics")) {
    if (!may_be_replaced(metrics->text))
      throw refuse(metrics->from, metrics->text, "a regular file, or one that is not there yet");
    made.metrics_file = metrics->text;
  }
  return made;
}

}  // namespace lockflight::agents
