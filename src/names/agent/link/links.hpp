// The connections between the agents of a cluster (docs/cluster.md, "How it works").
//
// For each ordered pair of agents the sender dials the receiver, over TLS with the cluster's
// pre-shared key. Messages are numbered and acknowledged; when a connection breaks the sender dials
// again and goes on with the first message that the receiver does not have.
//
// Invariants:
// - in order, exactly once: what an agent sends to a member arrives at the agent that has that
//   number, in order, each message once, as long as both run; but for
//   - what was queued for a peer when set_peers() dropped it or gave it another agent number, and
//   - the last messages of an epoch, when "not heard" below drops them.
// - not heard: when more is queued for a member than the limit, all of it is dropped, and the link
//   stays down until a message of a later epoch is sent. The member is not heard in the meantime,
//   so membership evicts it or this host, and there is a later epoch. The loss is safe: an agent
//   takes the messages of the later epoch up only when it has left the one before, and then drops
//   what still comes of that one. To it, the messages that were lost are messages that came too
//   late.
// - a greater agent number of a member replaces the smaller, for ever.
//
// A message to a member that is no peer yet waits for set_peers() to name the member: an agent
// sends its claims once in an epoch, and may have read the epoch before the member's address.
// Messages that still wait when one of a later epoch is sent are dropped: their receiver would
// drop them.
//
// Only the thread that runs the io_context uses the links.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "names/agent/link/frames.hpp"
#include "names/cluster/core/message.hpp"
#include "names/cluster/core/terms.hpp"

namespace asio {
class io_context;
}

namespace lockflight::cluster {

struct link_options {
  /// How often a peer is asked whether it is there. The TTL / 8. A connection from which nothing
  /// came for three times as long is closed and dialled again.
  std::chrono::milliseconds keep_alive{1'250};
  /// How long a connection may take until both sides have said who they are.
  std::chrono::milliseconds handshake_limit{5'000};
  /// Connections from others that may be in that state at a time. One more ends the oldest.
  std::size_t handshakes_most = 64;
  /// Bytes that may be queued for one member.
  std::size_t queued_most = std::size_t{64} << 20;
  /// Tests set another version than the agent's own.
  std::uint32_t version = link::protocol_version;
};

struct link_settings {
  member_id self = 0;
  agent_number agent = 0;
  /// At most 255 bytes, not empty.
  std::string domain;
  /// The address to listen at: "HOST:PORT", an IPv6 address in brackets. Port 0 is any free one.
  std::string address;
  std::array<std::uint8_t, 32> key{};
  link_options options;
};

/// Callbacks may call the links, and destroy them.
struct link_callbacks {
  std::function<void(message)> received;
  /// The member has answered this agent: messages get there, and answers back.
  std::function<void(member_id)> heard;
  /// A text that a person should know, about a member; 0 for a stranger. The same text about the
  /// same member comes at most once a minute.
  std::function<void(member_id, const std::string&)> trouble;
  /// A member asks, by ask(). Returns what it is told, at most 512 KiB.
  std::function<std::string(member_id, const std::string&)> asked = nullptr;
  /// The answer of a member to the question with that number.
  std::function<void(member_id, std::uint64_t number, std::string)> told = nullptr;
};

struct peer {
  member_id id = 0;
  agent_number agent = 0;
  std::string address;  ///< "HOST:PORT"
  bool operator==(const peer&) const = default;
};

struct peer_status {
  peer who;
  bool is_connected = false;    ///< messages to it get there
  bool is_reaching_us = false;  ///< the peer's connection to this agent is there
  std::size_t queued = 0;       ///< messages that it has not acknowledged
  std::size_t queued_bytes = 0;
  bool has_overflowed = false;  ///< the peer's queue was dropped (see "not heard")
  /// The median of its last pings, 16 at most.
  std::optional<std::chrono::nanoseconds> round_trip;
};

class links {
 public:
  /// Listens. Throws std::runtime_error, with the address and the reason, if it cannot.
  links(asio::io_context& io, link_settings settings, link_callbacks callbacks);
  /// As close().
  ~links();
  links(const links&) = delete;
  links& operator=(const links&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// The address at which the agent listens, with the port that it has got.
  [[nodiscard]] std::string address() const;

  /// Replaces the peers. This agent itself, and a peer without an address, do not count. After a
  /// read of etcd, call this before sending the messages that follow from the read: messages queued
  /// for a peer whose agent number changes are dropped.
  void set_peers(const std::vector<peer>& peers);
  /// Calls no callback. Throws std::length_error if the message is longer than a frame (1 MiB).
  void send(const message& what);
  /// Messages that were sent to that member leave now, not when the caller's turn is over.
  void flush(member_id to);

  /// Asks a peer. What it says comes by told(), or never, if the connection breaks. False if there
  /// is none. This is no message: it is not in the order of what is sent.
  [[nodiscard]] bool ask(member_id whom, std::uint64_t number, const std::string& what);

  /// The peers, by member id.
  [[nodiscard]] std::vector<peer_status> status() const;

  /// Closes all connections. What is queued is lost. No callback is called any more.
  void close();

 private:
  class all;
  std::shared_ptr<all> all_;
};

}  // namespace lockflight::cluster
