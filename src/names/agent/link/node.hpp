// The state that all connections of an agent share: its settings, its keys, and the way to its
// callbacks.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "names/agent/link/channel.hpp"
#include "names/agent/link/frames.hpp"
#include "names/agent/link/links.hpp"

namespace lockflight::cluster::link {

class node : public std::enable_shared_from_this<node> {
 public:
  node(asio::io_context& io, link_settings settings, link_callbacks callbacks);

  asio::io_context& io;
  const link_settings settings;
  const std::shared_ptr<tls> keys;

  void received(message what) {
    if (!is_closed_) callbacks_.received(std::move(what));
  }
  void heard(member_id from) {
    if (!is_closed_) callbacks_.heard(from);
  }
  /// The answer to member `by`. The text must fit into a frame.
  [[nodiscard]] std::string asked(member_id by, const std::string& what) {
    return is_closed_ || !callbacks_.asked ? "" : callbacks_.asked(by, what);
  }
  void told(member_id by, numbered_text what) {
    if (!is_closed_ && callbacks_.told) callbacks_.told(by, what.number, std::move(what.text));
  }
  /// Calls back later, so that set_peers() and send() may find trouble. Not more often than once a
  /// minute with the same text.
  void trouble(member_id about, std::string text);
  /// No callback is called any more.
  void close() { is_closed_ = true; }

  /// Of a queue to a peer. Each is greater than all before.
  [[nodiscard]] std::uint64_t next_stream() { return ++streams_; }
  /// A time that is up to a half shorter: agents that lost a peer together do not come back
  /// together.
  [[nodiscard]] steady::duration jittered(steady::duration most);
  /// The text about an agent of another version.
  [[nodiscard]] std::string other_version(std::uint32_t of_peer) const;

 private:
  link_callbacks callbacks_;
  bool is_closed_ = false;
  std::uint64_t streams_ = 0;
  std::minstd_rand random_;
  std::map<std::pair<member_id, std::string>, steady::time_point> said_;
};

}  // namespace lockflight::cluster::link
