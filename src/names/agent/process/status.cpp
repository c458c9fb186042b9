#include "names/agent/process/status.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/metrics_text.hpp"
#include "names/agent/etcd/text.hpp"

namespace lockflight::cluster {
namespace {

using json = nlohmann::ordered_json;

json json_of(const member_status& each) {
  json made{{"id", text_of(each.id)},   {"host", each.host},
            {"address", each.address},  {"self", each.is_self},
            {"member", each.is_member}, {"connected", each.is_connected},
            {"queued", each.queued},    {"cannot_hear", each.cannot_hear}};
  if (each.round_trip_us) made["round_trip_us"] = *each.round_trip_us;
  return made;
}

json json_of(const agent_status& what) {
  json members = json::array();
  for (const member_status& each : what.members) members.push_back(json_of(each));
  return {{"domain", what.domain},
          {"answers", what.answers},
          {"pid", what.pid},
          {"written_us", what.written_us},
          {"epoch", what.epoch},
          {"settled", what.is_settled},
          {"epochs_left", what.epochs_left},
          {"incarnation", what.incarnation},
          {"agent", what.agent},
          {"deadline_us", what.deadline_us},
          {"away_until_us", what.away_until_us},
          {"ttl_us", what.ttl_us},
          {"names", what.names},
          {"owned", what.owned},
          {"at_home", what.at_home},
          {"in_doubt", what.in_doubt},
          {"etcd_trouble", what.etcd_trouble},
          {"messages_sent", what.counts.messages_sent},
          {"messages_received", what.counts.messages_received},
          {"transactions", what.counts.transactions},
          {"revocations", what.counts.revocations},
          {"rings", what.counts.rings},
          {"members", std::move(members)}};
}

member_status member_from(const json& from) {
  member_status each;
  each.id = std::stoull(from.at("id").get<std::string>(), nullptr, 16);
  from.at("host").get_to(each.host);
  from.at("address").get_to(each.address);
  from.at("self").get_to(each.is_self);
  from.at("member").get_to(each.is_member);
  from.at("connected").get_to(each.is_connected);
  from.at("queued").get_to(each.queued);
  from.at("cannot_hear").get_to(each.cannot_hear);
  if (from.contains("round_trip_us")) each.round_trip_us = from.at("round_trip_us").get<double>();
  return each;
}

agent_status status_from(const json& from) {
  agent_status what;
  from.at("domain").get_to(what.domain);
  from.at("pid").get_to(what.pid);
  from.at("written_us").get_to(what.written_us);
  from.at("epoch").get_to(what.epoch);
  from.at("settled").get_to(what.is_settled);
  what.epochs_left = from.value("epochs_left", last_epoch);  // earlier agents do not say it
  from.at("incarnation").get_to(what.incarnation);
  from.at("agent").get_to(what.agent);
  from.at("deadline_us").get_to(what.deadline_us);
  what.away_until_us =
      from.value("away_until_us", std::int64_t{0});  // earlier agents do not say it
  from.at("ttl_us").get_to(what.ttl_us);
  from.at("names").get_to(what.names);
  from.at("owned").get_to(what.owned);
  from.at("at_home").get_to(what.at_home);
  from.at("in_doubt").get_to(what.in_doubt);
  from.at("etcd_trouble").get_to(what.etcd_trouble);
  from.at("messages_sent").get_to(what.counts.messages_sent);
  from.at("messages_received").get_to(what.counts.messages_received);
  from.at("transactions").get_to(what.counts.transactions);
  from.at("revocations").get_to(what.counts.revocations);
  from.at("rings").get_to(what.counts.rings);
  for (const json& each : from.at("members")) what.members.push_back(member_from(each));
  return what;
}

}  // namespace

std::string json_text_of(const agent_status& what) { return json_of(what).dump(2) + "\n"; }

std::optional<agent_status> status_from_json(const std::string& text) {
  try {
    return status_from(json::parse(text));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string metrics_text_of(const agent_status& what) {
  using enum metrics_text::type;
  metrics_text made;
  const metrics_text::labels here{{"domain", what.domain}};
  const auto add = [&](std::string_view name, metrics_text::type of, std::string_view help,
                       auto value) { made.single(name, of, help, here, value); };
  std::size_t connected = 0;
  std::size_t members = 0;
  for (const member_status& each : what.members) {
    members += each.is_member ? 1 : 0;
    connected += each.is_member && (each.is_self || each.is_connected) ? 1 : 0;
  }
  const double left =
      what.deadline_us == 0 ? 0 : static_cast<double>(what.deadline_us - what.written_us) / 1e6;
  add("lockflight_agent_valid_seconds", gauge,
      "How long this host is certainly a member from now on.", std::max(left, 0.0));
  add("lockflight_agent_epoch", gauge, "The epoch that this host is in; 0: none.", what.epoch);
  add("lockflight_agent_members", gauge, "Members of the epoch.", members);
  add("lockflight_agent_members_connected", gauge,
      "Members that this host reaches, itself included.", connected);
  add("lockflight_agent_etcd_up", gauge, "Whether etcd answered the last time.",
      what.etcd_trouble.empty() ? 1 : 0);
  add("lockflight_agent_names", gauge, "Names that have a lock on this host.", what.names);
  add("lockflight_agent_owned", gauge, "Names that this host owns.", what.owned);
  add("lockflight_agent_at_home", gauge, "Names that this host keeps the record of.", what.at_home);
  add("lockflight_agent_messages_sent_total", counter, "Messages to other agents.",
      what.counts.messages_sent);
  add("lockflight_agent_messages_received_total", counter, "Messages from other agents.",
      what.counts.messages_received);
  add("lockflight_agent_transactions_total", counter, "Requests to etcd.",
      what.counts.transactions);
  add("lockflight_agent_revocations_total", counter, "Names that other hosts asked for.",
      what.counts.revocations);
  add("lockflight_agent_rings_total", counter, "Times that a client of this host asked for a name.",
      what.counts.rings);
  made.family("lockflight_agent_round_trip_seconds", gauge,
              "Median of the last pings of a member.");
  for (const member_status& each : what.members)
    if (each.round_trip_us)
      made.sample({{"domain", what.domain}, {"member", text_of(each.id)}},
                  *each.round_trip_us / 1e6);
  return made.text();
}

}  // namespace lockflight::cluster
