#include "names/agent/link/codec.hpp"

#include <array>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace lockflight::cluster {
namespace {

using nlohmann::json;

// ---- to bytes ----

void put(json& to, mode what) { to.push_back(static_cast<unsigned>(what)); }
void put(json& to, bool what) { to.push_back(what); }
void put(json& to, const token& what) {
  to.push_back(what.epoch);
  to.push_back(what.counter);
}
void put(json& to, const std::optional<identity>& what) {
  if (!what) return;
  to.push_back(what->id);
  to.push_back(what->incarnation);
}

template <class... Fields>
void put_all(json& to, const Fields&... fields) {
  (put(to, fields), ...);
}

struct body_writer {
  json& to;
  void operator()(const request& what) const { put(to, what.wanted); }
  void operator()(const grant& what) const { put_all(to, what.granted, what.last, what.died); }
  void operator()(const revoke& what) const { put(to, what.wanted); }
  void operator()(const give_back& what) const { put_all(to, what.kept, what.last, what.died); }
  void operator()(const taken&) const {}
  void operator()(const claim& what) const { put_all(to, what.owned, what.last, what.died); }
  void operator()(const former_record& what) const {
    to.push_back(what.what.epoch);
    put_all(to, what.what.last, what.what.died, what.what.exclusive);
  }
  void operator()(const claims_done&) const {}
  void operator()(const forget&) const {}
  void operator()(const forgotten&) const {}
  void operator()(const witness_request& what) const { put(to, what.is_set); }
  void operator()(const witness_ack&) const {}
  void operator()(const witness_report& what) const { to.push_back(what.epoch); }
};

// ---- from bytes ----

/// The place where the next item begins, or 0 if no item that encode() makes is at `at`.
std::size_t after_item(std::span<const std::uint8_t> bytes, std::size_t at) {
  if (at >= bytes.size()) return 0;
  const unsigned major = bytes[at] >> 5;
  const unsigned low = bytes[at] & 31U;
  ++at;
  if (major == 7) return low == 20 || low == 21 ? at : 0;  // false and true
  if ((major != 0 && major != 3) || low > 27) return 0;
  std::uint64_t value = low;
  if (low >= 24) {
    const std::size_t count = std::size_t{1} << (low - 24);
    if (bytes.size() - at < count) return 0;
    value = 0;
    for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes[at++];
  }
  if (major == 0) return at;
  return value <= bytes.size() - at ? at + static_cast<std::size_t>(value) : 0;
}

/// True if `bytes` are an array of few items, none of which has items itself. The library's reader
/// calls itself for each level, and for each part of a string of unknown length: a frame full of
/// such heads would use up the stack. This also checks all lengths before anything is allocated.
bool is_flat_array(std::span<const std::uint8_t> bytes) {
  constexpr std::uint8_t array_of_none = 0x80;
  constexpr std::uint8_t array_of_most = array_of_none + 23;
  if (bytes.empty() || bytes[0] < array_of_none || bytes[0] > array_of_most) return false;
  std::size_t at = 1;
  for (int left = bytes[0] - array_of_none; left > 0; --left) {
    at = after_item(bytes, at);
    if (at == 0) return false;
  }
  return at == bytes.size();
}

/// Takes the items of an array one by one. After the first that is not what was asked for, or is
/// not there, nothing more is right.
class item_reader {
 public:
  explicit item_reader(json& items) : items_(items) {}

  [[nodiscard]] bool is_right() const { return is_right_; }
  [[nodiscard]] bool is_at_end() const { return is_right_ && next_ == items_.size(); }

  template <std::unsigned_integral Number>
  Number number(std::uint64_t most = std::numeric_limits<Number>::max()) {
    const json* const item = take();
    if (item == nullptr || !item->is_number_unsigned()) return fail<Number>();
    const auto value = item->get<std::uint64_t>();
    return value <= most ? static_cast<Number>(value) : fail<Number>();
  }
  std::string text() {
    json* const item = take();
    if (item == nullptr || !item->is_string()) return fail<std::string>();
    return std::move(item->get_ref<std::string&>());
  }

  void get(mode& to) {
    to = static_cast<mode>(number<std::uint8_t>(static_cast<std::uint8_t>(mode::exclusive)));
  }
  void get(bool& to) {
    const json* const item = take();
    to = item != nullptr && item->is_boolean() ? item->get<bool>() : fail<bool>();
  }
  // The words of a host have no room for more than these.
  void get(epoch_number& to) { to = number<epoch_number>(last_epoch); }
  void get(token& to) {
    get(to.epoch);
    to.counter = number<std::uint64_t>(last_counter);
  }
  void get(std::optional<identity>& to) {
    if (is_at_end()) return;
    to.emplace();
    to->id = number<member_id>();
    to->incarnation = number<incarnation_number>();
  }

 private:
  json* take() {
    if (!is_right_ || next_ == items_.size()) return nullptr;
    return &items_[next_++];
  }
  template <class Value>
  Value fail() {
    is_right_ = false;
    return {};
  }

  json& items_;
  std::size_t next_ = 0;
  bool is_right_ = true;
};

template <class... Fields>
void get_all(item_reader& from, Fields&... fields) {
  (from.get(fields), ...);
}

void read(item_reader& from, request& to) { from.get(to.wanted); }
void read(item_reader& from, grant& to) { get_all(from, to.granted, to.last, to.died); }
void read(item_reader& from, revoke& to) { from.get(to.wanted); }
void read(item_reader& from, give_back& to) { get_all(from, to.kept, to.last, to.died); }
void read(item_reader&, taken&) {}
void read(item_reader& from, claim& to) { get_all(from, to.owned, to.last, to.died); }
void read(item_reader& from, former_record& to) {
  get_all(from, to.what.epoch, to.what.last, to.what.died, to.what.exclusive);
}
void read(item_reader&, claims_done&) {}
void read(item_reader&, forget&) {}
void read(item_reader&, forgotten&) {}
void read(item_reader& from, witness_request& to) { from.get(to.is_set); }
void read(item_reader&, witness_ack&) {}
void read(item_reader& from, witness_report& to) { from.get(to.epoch); }

constexpr std::size_t kinds = std::variant_size_v<body>;

template <std::size_t Kind>
body read_kind(item_reader& from) {
  std::variant_alternative_t<Kind, body> what;
  read(from, what);
  return what;
}

body read_body(item_reader& from, std::size_t kind) {
  using reader = body (*)(item_reader&);
  static constexpr auto readers = []<std::size_t... Kind>(std::index_sequence<Kind...>) {
    return std::array<reader, kinds>{&read_kind<Kind>...};
  }(std::make_index_sequence<kinds>());
  return readers.at(kind)(from);
}

}  // namespace

void encode(const message& what, std::string& to) {
  json items = json::array();
  items.push_back(what.what.index());
  items.push_back(what.from);
  items.push_back(what.to);
  items.push_back(what.epoch);
  items.push_back(what.name);
  std::visit(body_writer{items}, what.what);
  json::to_cbor(items, to);
}

std::optional<message> decode(std::span<const std::uint8_t> bytes) {
  if (!is_flat_array(bytes)) return std::nullopt;
  json items = json::from_cbor(bytes.begin(), bytes.end(), true, false);
  if (!items.is_array()) return std::nullopt;
  item_reader from(items);
  message what;
  const auto kind = from.number<std::size_t>(kinds - 1);
  what.from = from.number<member_id>();
  what.to = from.number<member_id>();
  from.get(what.epoch);
  what.name = from.text();
  if (!from.is_right()) return std::nullopt;
  what.what = read_body(from, kind);
  if (!from.is_at_end()) return std::nullopt;
  return what;
}

}  // namespace lockflight::cluster
