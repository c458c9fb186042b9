// A connection: TCP, TLS above it, and frames above that.
//
// The channel calls its user for the events of the connection, until the connection breaks or the
// user closes it. No call comes after that, and none from within dial(), accept(), wake() or
// close().
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/context.hpp>
#include <asio/ssl/stream.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "names/agent/link/tls.hpp"

namespace lockflight::cluster::link {

using asio::ip::tcp;
using steady = std::chrono::steady_clock;

/// The key, and the contexts that OpenSSL has of it. All of an agent's channels share it.
struct tls {
  explicit tls(shared_key of);
  shared_key key;
  asio::ssl::context dialer;
  asio::ssl::context acceptor;
};

/// Why a channel broke.
struct breakage {
  handshake_fault fault = handshake_fault::other;
  std::string text;
};

class channel_user {
 public:
  /// The other side has the key.
  virtual void opened() = 0;
  /// A frame has come; the payload is not empty.
  virtual void arrived(std::span<const std::uint8_t> payload) = 0;
  /// All frames that came together have been passed to arrived().
  virtual void arrived_all() = 0;
  /// The channel can write: append frames, as many as go well in one write, or none.
  virtual void fill(std::string& to) = 0;
  virtual void broken(const breakage& why) = 0;

 protected:
  ~channel_user() = default;
};

class channel : public std::enable_shared_from_this<channel> {
 public:
  /// How much fill() should append before it stops.
  static constexpr std::size_t good_write = 64 * 1024;

  channel(tcp::socket socket, std::shared_ptr<tls> keys, tls_side side, channel_user& user);

  void dial(const std::vector<tcp::endpoint>& at);
  void accept();
  /// The user has something to write: fill() is called soon, or when the last write has ended.
  /// Everything that is to be written by then goes out together.
  void wake();
  /// The same, now, unless a write goes on.
  void wake_now();
  /// Longer frames are let in: the other side has said hello.
  void trust();
  /// Closes the channel when all is written that fill() has appended.
  void close_after_write();
  void close();

  [[nodiscard]] steady::time_point last_arrival() const { return last_arrival_; }

 private:
  void shake_hands();
  void read();
  void take_frames();
  void make_room();
  void begin_write();
  void write();
  void written();
  void fail(handshake_fault fault, std::string text);
  void fail_handshake(const asio::error_code& error);

  std::shared_ptr<tls> keys_;
  tls_side side_;
  channel_user* user_;  // null when closed
  asio::ssl::stream<tcp::socket> stream_;
  steady::time_point last_arrival_ = steady::now();
  bool is_open_ = false;
  bool is_writing_ = false;  // or about to
  bool is_about_to_write_ = false;
  bool closes_ = false;
  std::size_t longest_;
  std::uint64_t writes_ = 0;
  std::string outgoing_;
  std::vector<std::uint8_t> incoming_;
  std::size_t begin_ = 0;  // of what is in `incoming_` and is not taken
  std::size_t end_ = 0;
};

}  // namespace lockflight::cluster::link
