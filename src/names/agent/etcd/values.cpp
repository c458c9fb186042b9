#include "names/agent/etcd/values.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lockflight::cluster {
namespace {

using nlohmann::json;

constexpr unsigned format_version = 1;

unlike unlike_field(const char* name, std::string_view expected) {
  return {fmt::format("the field \"{}\": {}", name, expected)};
}

}  // namespace

bad_entry not_of_format(std::string_view key, std::string_view text, const unlike& what) {
  return bad_entry(
      fmt::format("etcd's key {} with the value {} is not what lockflight writes; "
                  "expected {}",
                  in_quotes(key, 160), in_quotes(text), what.expected));
}

// ---- fields ----

json_object json_object::whole(std::string_view text) {
  json_object all(json::parse(text, nullptr, /*allow_exceptions=*/false));
  if (!all.fields_.is_object()) throw unlike{"a JSON object"};
  if (all.number<std::uint32_t>("version") != format_version)
    throw unlike_field(
        "version", fmt::format("{} (a later lockflight may have written this)", format_version));
  return all;
}

json_object json_object::part(const json& of) {
  if (!of.is_object()) throw unlike{"objects in each array but \"missing\""};
  return json_object(of);
}

const json& json_object::field(const char* name, const char* expected) const {
  const auto found = fields_.find(name);
  if (found == fields_.end()) throw unlike_field(name, expected);
  return *found;
}

std::uint64_t json_object::number_up_to(const char* name, std::uint64_t most) const {
  const json& found = field(name, "a number");
  if (!found.is_number_unsigned() || found.get<std::uint64_t>() > most)
    throw unlike_field(name, fmt::format("a whole number from 0 to {}", most));
  return found.get<std::uint64_t>();
}

std::string json_object::text(const char* name) const {
  const json& found = field(name, "text");
  if (!found.is_string()) throw unlike_field(name, "text");
  return found.get<std::string>();
}

bool json_object::truth(const char* name) const {
  const json& found = field(name, "true or false");
  if (!found.is_boolean()) throw unlike_field(name, "true or false");
  return found.get<bool>();
}

member_id json_object::id(const char* name) const {
  const std::optional<member_id> found = read_member_id(text(name));
  if (!found) throw unlike_field(name, "16 hexadecimal digits, not all of them 0");
  return *found;
}

std::optional<std::string> from_hexadecimal(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const int high = digit(text[at]);
    const int low = digit(text[at + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

std::optional<member_id> read_member_id(std::string_view text) {
  const std::optional<std::string> bytes = from_hexadecimal(text);
  if (!bytes || bytes->size() != sizeof(member_id)) return std::nullopt;
  member_id id = 0;
  for (const char byte : *bytes) id = id << 8 | static_cast<unsigned char>(byte);
  return id == 0 ? std::nullopt : std::optional(id);
}

// ---- values ----

namespace {

json json_of(const identity& who) {
  return {{"id", text_of(who.id)}, {"incarnation", who.incarnation}};
}

template <class List, class Each>
json json_list(const List& all, Each each) {
  json list = json::array();
  for (const auto& one : all) list.push_back(each(one));
  return list;
}

json json_of(const past_epoch& past) {
  const auto of_identity = [](const identity& who) { return json_of(who); };
  return {{"number", past.number},
          {"passed_on", past.passed_on},
          {"members", json_list(past.members, of_identity)},
          {"gone", json_list(past.gone, of_identity)},
          {"has_leavers", past.has_leavers}};
}

json json_of(const epoch_value& epoch) {
  const auto of_member = [](const member& each) {
    json one = json_of(each.who);
    one["agent"] = each.agent;
    one["retires"] = each.retires;
    return one;
  };
  return {{"number", epoch.number},
          {"settled", epoch.settled},
          {"seals", json_list(epoch.seals,
                              [](const epoch_seal& each) {
                                return json{{"epoch", each.epoch}, {"drawn", each.drawn}};
                              })},
          {"members", json_list(epoch.members, of_member)},
          {"past", json_list(epoch.past, [](const past_epoch& each) { return json_of(each); })}};
}

json json_of(const member_value& what) {
  return {{"incarnation", what.incarnation}, {"agent", what.agent}, {"retires", what.retires}};
}

json json_of(const beat_value& what) {
  return {{"begun", what.begun},
          {"missing", json_list(what.missing, [](member_id id) { return text_of(id); })},
          {"number", what.number}};
}

json json_of(const evicted_value&) { return json::object(); }

json json_of(const cluster_value& what) {
  return {{"id", text_of(what.id)}, {"recoveries", what.recoveries}};
}

identity read_identity(const json& part) {
  const json_object from = json_object::part(part);
  return {from.id("id"), from.number<incarnation_number>("incarnation")};
}

template <class Each>
void check_order(const char* name, const std::vector<Each>& all) {
  const auto is_out_of_order = [](const Each& one, const Each& next) { return one >= next; };
  if (std::adjacent_find(all.begin(), all.end(), is_out_of_order) != all.end())
    throw unlike_field(name, "members in the order of their numbers, each once");
}

past_epoch read_past(const json& part) {
  const json_object from = json_object::part(part);
  past_epoch past{from.epoch("number"), from.list("members", read_identity),
                  from.truth("passed_on"), from.list("gone", read_identity),
                  from.truth("has_leavers")};
  check_order("members", past.members);
  check_order("gone", past.gone);
  return past;
}

std::vector<member_id> ids_of(const std::vector<member>& members) {
  std::vector<member_id> ids;
  for (const member& each : members) ids.push_back(each.who.id);
  return ids;
}

}  // namespace

std::string text_of(const value& what, const member_place* place) {
  json fields = std::visit([](const auto& each) { return json_of(each); }, what);
  fields["version"] = format_version;
  if (place != nullptr && std::holds_alternative<member_value>(what)) {
    fields["address"] = place->address;
    fields["host"] = place->host;
  }
  return fields.dump();
}

epoch_value read_epoch(const json_object& from) {
  const auto read_one = [](const json& part) {
    const json_object one = json_object::part(part);
    return member{read_identity(part), one.number<agent_number>("agent"), one.truth("retires")};
  };
  epoch_value epoch{from.epoch("number"),
                    from.list("members", read_one),
                    from.list("past", read_past),
                    from.truth("settled"),
                    {}};
  const auto read_seal = [](const json& part) {
    const json_object one = json_object::part(part);
    return epoch_seal{one.epoch("epoch"), one.number<std::uint32_t>("drawn")};
  };
  // The epochs of earlier versions have no seals.
  if (from.has("seals")) epoch.seals = from.list("seals", read_seal);
  if (epoch.number == 0) throw unlike_field("number", "at least 1");
  check_order("members", ids_of(epoch.members));
  return epoch;
}

member_value read_member(const json_object& from) {
  return {from.number<incarnation_number>("incarnation"), from.number<agent_number>("agent"),
          from.truth("retires")};
}

std::optional<member_place> read_place(const json_object& from) {
  if (!from.has("address") && !from.has("host")) return std::nullopt;
  member_place place{from.text("address"), from.text("host")};
  try {
    check_place(place);
  } catch (const std::invalid_argument& e) {
    throw unlike{e.what()};
  }
  return place;
}

beat_value read_beat(const json_object& from) {
  const auto read_one = [](const json& part) {
    const std::optional<member_id> id =
        part.is_string() ? read_member_id(part.get<std::string>()) : std::nullopt;
    if (!id) throw unlike_field("missing", "texts of 16 hexadecimal digits, not all of them 0");
    return *id;
  };
  // The beats of earlier versions have no number.
  const auto number = from.has("number") ? from.number<beat_number>("number") : 0;
  return {from.epoch("begun"), from.list("missing", read_one), number};
}

cluster_value read_cluster(const json_object& from) {
  return {from.id("id"), from.number<std::uint32_t>("recoveries")};
}

// ---- the secret ----

std::string text_of(const domain_secret& secret) {
  std::string digits;
  for (const std::uint8_t byte : secret) digits += fmt::format("{:02x}", byte);
  return json{{"version", format_version}, {"key", digits}}.dump();
}

domain_secret read_secret(std::string_view key, std::string_view text) {
  try {
    const std::optional<std::string> bytes = from_hexadecimal(json_object::whole(text).text("key"));
    domain_secret secret{};
    if (!bytes || bytes->size() != secret.size())
      throw unlike_field("key", fmt::format("{} hexadecimal digits", 2 * secret.size()));
    std::transform(bytes->begin(), bytes->end(), secret.begin(),
                   [](char c) { return static_cast<std::uint8_t>(c); });
    return secret;
  } catch (const unlike& what) {
    // The value stays out of the message: it may hold most of the secret.
    throw not_of_format(key, "(not shown)", what);
  }
}

}  // namespace lockflight::cluster
