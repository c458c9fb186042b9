// The frames that two agents send each other on a connection: 4 bytes of length, then so many of
// payload, all numbers with the highest byte first. The first byte of a payload is its kind.
//
//   from          | frame  | what follows the kind
//   both, first   | hello  | see below
//   the dialer    | data   | the message's number (8 bytes), the message (codec.hpp)
//   the dialer    | ping   | a number (8 bytes)
//   the acceptor  | ack    | how many messages of the stream it has (8 bytes)
//   the acceptor  | pong   | the number of a ping
//   the dialer    | asks   | a number (8 bytes), a text
//   the acceptor  | tells  | the number of what was asked (8 bytes), a text
//
// Questions and answers are for people who look at the cluster. They are in no stream: they are
// lost with the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "names/cluster/core/message.hpp"

namespace lockflight::cluster::link {

/// The version of this protocol. Agents of different versions refuse each other.
inline constexpr std::uint32_t protocol_version = 2;
inline constexpr std::size_t length_size = 4;
/// No payload is longer.
inline constexpr std::size_t longest_payload = std::size_t{1} << 20;
/// Before the hello has come.
inline constexpr std::size_t longest_hello = 1024;
inline constexpr std::size_t longest_domain = 255;

enum class frame_kind : std::uint8_t { hello = 1, data, ack, ping, pong, asks, tells };

/// The acceptor's answer to the dialer's hello. The dialer's own hello has `accepted`.
enum class verdict : std::uint8_t { accepted, other_version, other_domain, other_agent, outdated };

/// The first frame in each direction. Magic, version and sender stand at the same places in all
/// versions of the protocol, so that each agent can say which version another one speaks.
struct hello {
  std::uint32_t version = protocol_version;
  member_id from = 0;
  // The fields below are read only if the version is the reader's own.
  agent_number from_agent = 0;
  member_id to = 0;
  agent_number to_agent = 0;
  verdict what = verdict::accepted;
  /// A dialer that drops what it had queued begins another stream, with a greater number.
  std::uint64_t stream = 0;
  /// From the dialer: how many messages of the stream the acceptor is known to have. From the
  /// acceptor: how many it has.
  std::uint64_t received = 0;
  std::string domain;
};

void append_hello(std::string& to, const hello& what);
/// An ack, a ping or a pong.
void append_number(std::string& to, frame_kind kind, std::uint64_t number);
/// A question, or an answer. Throws std::length_error if the text is too long for a frame.
void append_text(std::string& to, frame_kind kind, std::uint64_t number, std::string_view text);
/// A whole frame. Throws std::length_error if the message is too long for one.
[[nodiscard]] std::string data_frame(std::uint64_t number, const message& what);

/// The length that a frame begins with.
[[nodiscard]] std::size_t payload_length(std::span<const std::uint8_t, length_size> head);
/// Of a payload, which is not empty.
[[nodiscard]] frame_kind kind_of(std::span<const std::uint8_t> payload);
/// No value if the payload is something else. Of another version, the version and the sender alone.
[[nodiscard]] std::optional<hello> read_hello(std::span<const std::uint8_t> payload,
                                              std::uint32_t version);
/// Of an ack, a ping or a pong.
[[nodiscard]] std::optional<std::uint64_t> read_number(std::span<const std::uint8_t> payload);

struct numbered_text {
  std::uint64_t number = 0;
  std::string text;
};
/// Of what is asked, or told.
[[nodiscard]] std::optional<numbered_text> read_text(std::span<const std::uint8_t> payload);

struct data {
  std::uint64_t number = 0;
  std::span<const std::uint8_t> encoded;  ///< the message, a part of the payload
};
[[nodiscard]] std::optional<data> read_data(std::span<const std::uint8_t> payload);

}  // namespace lockflight::cluster::link
