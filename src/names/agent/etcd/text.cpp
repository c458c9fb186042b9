#include "names/agent/etcd/text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "names/agent/etcd/values.hpp"

namespace lockflight::cluster {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

constexpr std::string_view kind_texts[] = {"epoch", "member/", "beat/", "evicted/", "cluster"};

// After the keys of the core in the order of bytes, as domain_keys::end() promises.
constexpr const char* notes = "note/";
static_assert(std::ranges::all_of(kind_texts, [](std::string_view each) { return each < notes; }));

}  // namespace

void check_place(const member_place& place) {
  const auto is_printable = [](char c) { return c > 0x20 && c < 0x7f; };
  const auto is_text = [&](std::string_view text) {
    return !text.empty() && text.size() <= 255 &&
           std::all_of(text.begin(), text.end(), is_printable);
  };
  const std::string_view address = place.address;
  const std::size_t colon = address.rfind(':');
  const std::string_view port =
      colon == std::string_view::npos ? std::string_view{} : address.substr(colon + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool is_port = !port.empty() && port.size() <= 5 && port[0] != '0' &&
                       std::all_of(port.begin(), port.end(), is_digit) &&
                       std::stoi(std::string(port)) <= 65535;
  if (!is_text(address) || !is_port || colon == 0)
    throw std::invalid_argument("\"address\": " + in_quotes(address) +
                                "; expected HOST:PORT, the port from 1 to 65535");
  if (!is_text(place.host))
    throw std::invalid_argument("\"host\": " + in_quotes(place.host) +
                                "; expected 1 to 255 printable characters of ASCII, no spaces");
}

// ---- keys ----

domain_keys::domain_keys(const std::string& domain) : prefix_("lockflight/" + domain + "/") {
  if (domain.empty() || domain.size() > 64 ||
      !std::all_of(domain.begin(), domain.end(), is_name_character))
    throw std::invalid_argument("the domain " + in_quotes(domain) +
                                ": expected 1 to 64 letters, digits, '.', '-' or '_'");
}

std::string domain_keys::end() const { return prefix_ + notes; }

std::string domain_keys::text_of(const key& which) const {
  std::string text = prefix_;
  text += kind_texts[static_cast<std::size_t>(which.kind)];
  if (which.kind != key_kind::epoch && which.kind != key_kind::cluster)
    text += cluster::text_of(which.id);
  return text;
}

std::string domain_keys::note(const std::string& name) const {
  if (name.empty() || name.size() > 300)
    throw std::invalid_argument("the note " + in_quotes(name) + ": expected 1 to 300 bytes");
  return prefix_ + notes + name;
}

// ---- all of a domain ----

namespace {

/// The key, if it is one of the core's. `rest` is it without the prefix.
std::optional<key> read_key(std::string_view rest) {
  for (const key_kind kind : {key_kind::epoch, key_kind::cluster})
    if (rest == kind_texts[static_cast<std::size_t>(kind)]) return key{kind, 0};
  for (const key_kind kind : {key_kind::member, key_kind::beat, key_kind::evicted}) {
    const std::string_view head = kind_texts[static_cast<std::size_t>(kind)];
    if (!rest.starts_with(head)) continue;
    const std::optional<member_id> id = read_member_id(rest.substr(head.size()));
    if (!id) throw unlike{fmt::format("{} and 16 hexadecimal digits, not all of them 0", head)};
    return key{kind, *id};
  }
  return std::nullopt;
}

void add_value(const key& at, const etcd_entry& entry, etcd_view& to) {
  const json_object from = json_object::whole(entry.value);
  if (at.kind == key_kind::epoch) {
    to.keys.epoch = {read_epoch(from), entry.created, entry.changed};
    return;
  }
  if (at.kind == key_kind::cluster) {
    to.keys.cluster = {read_cluster(from), entry.created, entry.changed};
    return;
  }
  member_keys& of = to.keys.members[at.id];
  if (at.kind == key_kind::beat) {
    of.beat = {read_beat(from), entry.created, entry.changed};
  } else if (at.kind == key_kind::evicted) {
    of.evicted = true;
  } else {
    of.member = {read_member(from), entry.created, entry.changed};
    const std::optional<member_place> place = read_place(from);
    if (!place) return;
    to.addresses[at.id] = place->address;
    to.hosts[at.id] = place->host;
  }
}

}  // namespace

void add(const etcd_entry& entry, const domain_keys& names, etcd_view& to) {
  try {
    if (!entry.key.starts_with(names.prefix())) throw unlike{names.prefix() + "..."};
    const auto at = read_key(std::string_view(entry.key).substr(names.prefix().size()));
    if (at) add_value(*at, entry, to);
  } catch (const unlike& not_this) {
    throw not_of_format(entry.key, entry.value, not_this);
  }
}

}  // namespace lockflight::cluster
