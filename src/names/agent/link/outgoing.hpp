// The sending side of the link to one member: the queue, and the connection that this agent dials.
//
// A stream is a sequence of messages that are numbered from 1. What the acceptor has acknowledged
// is dropped from the queue; what it has not is sent again on the next connection. When the queue
// is dropped another stream begins, so that the acceptor does not wait for what never comes.
#pragma once

#include <array>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "names/agent/link/channel.hpp"
#include "names/agent/link/frames.hpp"
#include "names/agent/link/node.hpp"

namespace lockflight::cluster::link {

class outgoing final : public channel_user, public std::enable_shared_from_this<outgoing> {
 public:
  outgoing(std::shared_ptr<node> of, member_id to);

  /// The member is a peer: dials it.
  void set_peer(const peer& is);
  [[nodiscard]] bool is_peer() const { return !peer_.address.empty(); }
  void send(const message& what);
  /// False if there is no connection.
  [[nodiscard]] bool ask(std::uint64_t number, const std::string& what);
  /// The epoch of the newest message.
  [[nodiscard]] epoch_number newest() const { return newest_; }
  /// Nothing is sent any more.
  void close();
  /// Queued messages go out now, if the connection can take them.
  void flush() {
    if (state_ == state::open) channel_->wake_now();
  }
  [[nodiscard]] peer_status status() const;

 private:
  enum class state : std::uint8_t {
    closed,      // no peer, or overflowed
    waiting,     // to dial again
    connecting,  // until the acceptor has said hello
    open,
  };
  struct ping {
    std::uint64_t number = 0;
    steady::time_point sent;
  };

  void begin_stream();
  void overflow(epoch_number last);
  void drop_connection();
  void dial();
  void connect(const std::vector<tcp::endpoint>& at);
  void dial_later();
  void wait(steady::duration how_long);
  void timer();
  void keep_alive();
  void lost(const std::string& why);

  void opened() override;
  void arrived(std::span<const std::uint8_t> payload) override;
  void arrived_all() override {}
  void fill(std::string& to) override;
  void broken(const breakage& why) override;

  void greeted(const hello& by);
  [[nodiscard]] std::string refusal(const hello& by) const;
  [[nodiscard]] bool acknowledged(std::uint64_t count);
  void answered(std::uint64_t ping_number);

  std::shared_ptr<node> node_;
  peer peer_;
  state state_ = state::closed;
  std::shared_ptr<channel> channel_;
  tcp::resolver resolver_;
  asio::steady_timer timer_;
  std::uint64_t waits_ = 0;  // an older wait has nothing to say
  steady::duration back_off_;

  std::uint64_t stream_;
  std::deque<std::string> queue_;
  std::size_t queued_bytes_ = 0;
  std::uint64_t acknowledged_ = 0;  // of the stream: the number before the first in the queue
  std::size_t written_ = 0;         // of the queue, on this connection
  epoch_number newest_ = 0;
  std::optional<epoch_number> overflowed_;  // the epoch that lost messages

  std::string asks_;  // frames that have to be written
  bool says_hello_ = false;
  bool pings_ = false;
  std::uint64_t pings_sent_ = 0;
  std::deque<ping> unanswered_;
  std::deque<double> round_trips_;  // nanoseconds
};

}  // namespace lockflight::cluster::link
