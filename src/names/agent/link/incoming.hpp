// The receiving side of the links: the port, the connections that other agents dial, and how much
// of each one's stream has come.
#pragma once

#include <asio/steady_timer.hpp>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "names/agent/link/channel.hpp"
#include "names/agent/link/frames.hpp"
#include "names/agent/link/node.hpp"

namespace lockflight::cluster::link {

class arrival;

/// The state of a member that sends. The state is never forgotten: a peer that was dropped may come
/// back, as the same agent, and go on with its stream.
struct source {
  agent_number agent = 0;  ///< the greatest that there was
  std::uint64_t stream = 0;
  std::uint64_t received = 0;  ///< messages of the stream
  std::shared_ptr<arrival> connection;
};

/// Listens, and has all connections that others have dialled.
class listener : public std::enable_shared_from_this<listener> {
 public:
  /// Throws std::runtime_error.
  explicit listener(std::shared_ptr<node> of);

  void start();
  void close();
  [[nodiscard]] std::uint16_t port() const { return endpoint_.port(); }
  [[nodiscard]] std::string address() const;
  /// etcd has that agent of the member: what an older one sends does not count any more.
  void know(const peer& is);
  [[nodiscard]] bool is_reached_by(member_id id) const;

  // For its arrivals.

  /// Answers the hello. If it is accepted, the connection is the one of its source from now on.
  [[nodiscard]] hello answer(const hello& to, const std::shared_ptr<arrival>& by);
  [[nodiscard]] source& source_of(member_id id) { return sources_[id]; }
  /// The connection has ended.
  void remove(const std::shared_ptr<arrival>& ended);
  /// Calls acknowledge() of all connections in a short while.
  void acknowledge_soon();

 private:
  void accept();
  void take(tcp::socket socket);
  void sweep();
  [[nodiscard]] verdict judge(const hello& of) const;

  std::shared_ptr<node> node_;
  tcp::acceptor acceptor_;
  tcp::endpoint endpoint_;
  std::string host_;
  asio::steady_timer retry_;
  asio::steady_timer sweep_;
  asio::steady_timer acknowledge_;
  bool acknowledges_ = false;
  bool is_closed_ = false;
  std::list<std::shared_ptr<arrival>> strangers_;  // the oldest first
  std::map<member_id, source> sources_;
};

/// A connection that another agent has dialled, or a stranger.
class arrival final : public channel_user, public std::enable_shared_from_this<arrival> {
 public:
  arrival(std::shared_ptr<node> of, std::weak_ptr<listener> at, tcp::socket socket,
          std::string from);

  void start() { channel_->accept(); }
  void close() { channel_->close(); }
  [[nodiscard]] steady::time_point since() const { return since_; }
  [[nodiscard]] steady::time_point last_arrival() const { return channel_->last_arrival(); }
  /// 0 as long as it is a stranger's.
  [[nodiscard]] member_id member() const { return member_; }
  void acknowledge();
  /// Says why, and ends.
  void end(const std::string& why);

 private:
  void opened() override {}
  void arrived(std::span<const std::uint8_t> payload) override;
  void arrived_all() override;
  void fill(std::string& to) override;
  void broken(const breakage& why) override;

  void greet(const hello& by);
  void take(const data& what);
  void tell(const numbered_text& asked);

  std::shared_ptr<node> node_;
  std::weak_ptr<listener> listener_;
  std::string from_;  // the address, without the port
  steady::time_point since_ = steady::now();
  std::shared_ptr<channel> channel_;
  member_id member_ = 0;
  bool is_refused_ = false;
  std::optional<hello> answer_;  // that has to be written
  bool acknowledges_ = false;
  std::size_t unacknowledged_bytes_ = 0;
  std::vector<std::uint64_t> pongs_;
  std::string tells_;  // frames that have to be written
};

}  // namespace lockflight::cluster::link
