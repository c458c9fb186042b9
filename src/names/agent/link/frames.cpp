#include "names/agent/link/frames.hpp"

#include <concepts>
#include <stdexcept>

#include "names/agent/link/codec.hpp"

namespace lockflight::cluster::link {
namespace {

constexpr std::uint32_t magic = 0x4c464c4b;  // "LFLK"

template <std::unsigned_integral Number>
void put(std::string& to, Number what) {
  for (std::size_t i = sizeof what; i-- > 0;)
    to += static_cast<char>(static_cast<std::uint8_t>(what >> (8 * i)));
}

/// Begins a frame whose length is not known yet. Returns where it begins.
std::size_t begin_frame(std::string& to, frame_kind kind) {
  const std::size_t start = to.size();
  put(to, std::uint32_t{0});
  put(to, static_cast<std::uint8_t>(kind));
  return start;
}

void end_frame(std::string& to, std::size_t start) {
  const std::size_t length = to.size() - start - length_size;
  if (length > longest_payload) throw std::length_error("a message is too long for the network");
  for (std::size_t i = 0; i < length_size; ++i)
    to[start + i] = static_cast<char>(static_cast<std::uint8_t>(length >> (8 * (3 - i))));
}

/// Takes numbers off the front of a payload.
class field_reader {
 public:
  explicit field_reader(std::span<const std::uint8_t> payload) : left_(payload) {}

  template <std::unsigned_integral Number>
  Number number() {
    if (left_.size() < sizeof(Number)) {
      is_right_ = false;
      return 0;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i) value = value << 8 | left_[i];
    left_ = left_.subspan(sizeof(Number));
    return static_cast<Number>(value);
  }
  [[nodiscard]] std::span<const std::uint8_t> rest() const { return left_; }
  [[nodiscard]] bool is_right() const { return is_right_; }

 private:
  std::span<const std::uint8_t> left_;
  bool is_right_ = true;
};

}  // namespace

void append_hello(std::string& to, const hello& what) {
  const std::size_t start = begin_frame(to, frame_kind::hello);
  put(to, magic);
  put(to, what.version);
  put(to, what.from);
  put(to, what.from_agent);
  put(to, what.to);
  put(to, what.to_agent);
  put(to, static_cast<std::uint8_t>(what.what));
  put(to, what.stream);
  put(to, what.received);
  to += what.domain;
  end_frame(to, start);
}

void append_number(std::string& to, frame_kind kind, std::uint64_t number) {
  const std::size_t start = begin_frame(to, kind);
  put(to, number);
  end_frame(to, start);
}

void append_text(std::string& to, frame_kind kind, std::uint64_t number, std::string_view text) {
  const std::size_t start = begin_frame(to, kind);
  put(to, number);
  to += text;
  end_frame(to, start);
}

std::string data_frame(std::uint64_t number, const message& what) {
  std::string frame;
  frame.reserve(80 + what.name.size());
  const std::size_t start = begin_frame(frame, frame_kind::data);
  put(frame, number);
  encode(what, frame);
  end_frame(frame, start);
  return frame;
}

std::size_t payload_length(std::span<const std::uint8_t, length_size> head) {
  return field_reader(head).number<std::uint32_t>();
}

frame_kind kind_of(std::span<const std::uint8_t> payload) {
  return static_cast<frame_kind>(payload.front());
}

std::optional<hello> read_hello(std::span<const std::uint8_t> payload, std::uint32_t version) {
  field_reader from(payload);
  if (from.number<std::uint8_t>() != static_cast<std::uint8_t>(frame_kind::hello) ||
      from.number<std::uint32_t>() != magic)
    return std::nullopt;
  hello what;
  what.version = from.number<std::uint32_t>();
  what.from = from.number<member_id>();
  if (!from.is_right()) return std::nullopt;
  if (what.version != version) return what;
  what.from_agent = from.number<agent_number>();
  what.to = from.number<member_id>();
  what.to_agent = from.number<agent_number>();
  const auto said = from.number<std::uint8_t>();
  what.stream = from.number<std::uint64_t>();
  what.received = from.number<std::uint64_t>();
  if (!from.is_right() || said > static_cast<std::uint8_t>(verdict::outdated) ||
      from.rest().size() > longest_domain)
    return std::nullopt;
  what.what = static_cast<verdict>(said);
  what.domain.assign(from.rest().begin(), from.rest().end());
  return what;
}

std::optional<std::uint64_t> read_number(std::span<const std::uint8_t> payload) {
  field_reader from(payload.subspan(1));
  const auto number = from.number<std::uint64_t>();
  if (!from.is_right() || !from.rest().empty()) return std::nullopt;
  return number;
}

std::optional<numbered_text> read_text(std::span<const std::uint8_t> payload) {
  field_reader from(payload.subspan(1));
  const auto number = from.number<std::uint64_t>();
  if (!from.is_right()) return std::nullopt;
  return numbered_text{number, {from.rest().begin(), from.rest().end()}};
}

std::optional<data> read_data(std::span<const std::uint8_t> payload) {
  field_reader from(payload.subspan(1));
  const auto number = from.number<std::uint64_t>();
  if (!from.is_right()) return std::nullopt;
  return data{number, from.rest()};
}

}  // namespace lockflight::cluster::link
