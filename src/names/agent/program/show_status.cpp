#include "names/agent/program/show_status.hpp"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <thread>

#include "names/agent/process/status.hpp"
#include "names/cluster/client/elsewhere.hpp"
#include "names/cluster/client/words.hpp"
#include "tool/table.hpp"

namespace lockflight::agents {
namespace {

using cluster::agent_status;
using cluster::member_status;
using tool::style;

constexpr auto answers_within = std::chrono::milliseconds(2'000);

std::string seconds(std::int64_t us) {
  return fmt::format("{:.1f} s", static_cast<double>(us) / 1e6);
}

void print_members(const agent_status& what, tool::console& out) {
  tool::table shown({{.title = "member", .numeric = false},
                     {.title = "address", .numeric = false},
                     {.title = "in the epoch", .numeric = false},
                     {.title = "connected", .numeric = false},
                     {.title = "round trip"},
                     {.title = "queued"},
                     {.title = "cannot hear", .numeric = false}});
  for (const member_status& each : what.members) {
    std::string missed;
    for (const std::string& host : each.cannot_hear) missed += (missed.empty() ? "" : ", ") + host;
    const bool reaches = each.is_self || each.is_connected;
    shown.add_row({{each.host + (each.is_self ? " (this host)" : "")},
                   {each.address},
                   {each.is_member ? "yes" : "no", each.is_member ? style::plain : style::bad},
                   {each.is_self ? ""
                    : reaches    ? "yes"
                                 : "no",
                    reaches ? style::plain : style::bad},
                   {each.round_trip_us ? fmt::format("{:.0f} us", *each.round_trip_us) : ""},
                   {each.is_self ? "" : std::to_string(each.queued)},
                   {missed, style::bad}});
  }
  shown.print(out);
}

/// The status that the agent reports; nothing if it does not answer.
std::optional<agent_status> status_of(const detail::domain_file& file) {
  const auto answer =
      detail::ask_agent(file, {std::string(detail::status_question)}, answers_within);
  if (!answer || answer->front().size() != 2) return std::nullopt;
  return cluster::status_from_json(answer->front()[1]).value_or(agent_status{});
}

}  // namespace

int end_doubt(const std::string& domain, tool::console& out) {
  const std::string name = std::string(detail::cluster_prefix) + domain;
  const auto file = detail::domain_file::open(name, {}, false);
  constexpr auto every = std::chrono::milliseconds(100);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  if (!detail::ask_agent(*file, {std::string(detail::end_doubt_question)}, answers_within)) {
    out.line(out.paint(style::bad, fmt::format("the agent of {} does not answer", name)));
    return 3;
  }
  while (true) {
    const auto now = status_of(*file);
    if (now && now->is_settled && now->in_doubt == 0) break;
    if (std::chrono::steady_clock::now() >= until) {
      out.line(out.paint(style::bad,
                         "names are still in doubt after 10 s: the members have not agreed "
                         "on it yet, and the agent goes on trying, or more hosts were lost"));
      return 3;
    }
    std::this_thread::sleep_for(every);
  }
  out.line("nothing is in doubt any more");
  return 0;
}

int show_status(const std::string& domain, bool as_json, tool::console& out) {
  const std::string name = std::string(detail::cluster_prefix) + domain;
  const auto file = detail::domain_file::open(name, {}, false);
  const bool runs = file->has_agent();
  if (runs) detail::require_agents_clock(*file);
  const cluster::instant now = detail::boot_time();
  const cluster::instant left = file->cluster().deadline - now;
  const bool is_member = runs && left > 0;
  const auto answer = status_of(*file);
  const bool has_answered = answer.has_value();
  const agent_status what = answer.value_or(agent_status{});
  if (as_json) {
    agent_status shown = what;
    if (!has_answered) {
      shown.domain = domain;
      shown.answers = false;
    }
    out.print(cluster::json_text_of(shown));
    return is_member ? 0 : 1;
  }
  if (!runs) {
    out.line(out.paint(style::bad, fmt::format("the agent of {} does not run on this host", name)));
  } else if (left > 0) {
    out.line(out.paint(style::good,
                       fmt::format("a member of {}, certainly for {} more", name, seconds(left))));
  } else {
    out.line(out.paint(style::bad, fmt::format("not a member of {} now", name)));
  }
  if (!what.etcd_trouble.empty()) out.line(out.paint(style::bad, what.etcd_trouble));
  if (!has_answered) {
    if (runs) out.line(out.paint(style::bad, "the agent does not answer"));
    return is_member ? 0 : 1;
  }
  if (left <= 0 && what.away_until_us > now)
    out.line(
        out.paint(style::bad, fmt::format("joins again in {}: the others did not hear this host "
                                          "(--advertise, firewalls)",
                                          seconds(what.away_until_us - now))));
  out.line(fmt::format("epoch {}{}, incarnation {} of this host, agent {} (process {})", what.epoch,
                       what.is_settled ? "" : " (not settled)", what.incarnation, what.agent,
                       what.pid));
  out.line(fmt::format("{} names here, {} owned; this host is the home of {}", what.names,
                       what.owned, what.at_home));
  if (what.epochs_left < cluster::few_epochs)
    out.line(out.paint(style::bad,
                       fmt::format("{} more changes of members are possible in this domain; set up "
                                   "one of another name before they are used up",
                                   what.epochs_left)));
  if (what.in_doubt > 0)
    out.line(
        "several hosts were lost at once: the first holder of each name that they may have had "
        "is told of a death; 'lockflight agent consistent' ends that");
  out.line();
  print_members(what, out);
  return is_member ? 0 : 1;
}

}  // namespace lockflight::agents
