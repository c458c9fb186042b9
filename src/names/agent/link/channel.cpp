#include "names/agent/link/channel.hpp"

#include <openssl/err.h>

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/connect.hpp>
#include <asio/post.hpp>
#include <asio/ssl/error.hpp>
#include <asio/write.hpp>
#include <utility>

#include "names/agent/link/frames.hpp"

namespace lockflight::cluster::link {
namespace {

/// Room for two of TLS's records.
constexpr std::size_t first_room = 32 * 1024;
/// AES-GCM is safe for some 2^24 records with one key (RFC 8446, section 5.5). This is far less, so
/// that tests come to it, and costs nothing.
constexpr std::uint64_t writes_of_a_key = 4096;

std::string text_of(const asio::error_code& error) {
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated)
    return "the other side has closed it";
  return error.message();
}

}  // namespace

tls::tls(shared_key of)
    : key(std::move(of)),
      dialer(asio::ssl::context::tlsv13_client),
      acceptor(asio::ssl::context::tlsv13_server) {
  set_up(dialer.native_handle(), tls_side::dialer, key);
  set_up(acceptor.native_handle(), tls_side::acceptor, key);
}

channel::channel(tcp::socket socket, std::shared_ptr<tls> keys, tls_side side, channel_user& user)
    : keys_(std::move(keys)),
      side_(side),
      user_(&user),
      stream_(std::move(socket), side == tls_side::dialer ? keys_->dialer : keys_->acceptor),
      longest_(longest_hello) {}

// ---- the beginning ----

void channel::dial(const std::vector<tcp::endpoint>& at) {
  asio::async_connect(
      stream_.next_layer(), at,
      [self = shared_from_this()](const asio::error_code& error, const tcp::endpoint&) {
        if (self->user_ == nullptr) return;
        if (error) return self->fail(handshake_fault::other, text_of(error));
        self->shake_hands();
      });
}

void channel::accept() { shake_hands(); }

void channel::shake_hands() {
  asio::error_code ignored;
  stream_.next_layer().set_option(tcp::no_delay(true), ignored);
  const auto type =
      side_ == tls_side::dialer ? asio::ssl::stream_base::client : asio::ssl::stream_base::server;
  stream_.async_handshake(type, [self = shared_from_this()](const asio::error_code& error) {
    if (self->user_ == nullptr) return;
    if (error) return self->fail_handshake(error);
    // OpenSSL calls it reuse when the key of both sides was used, and no certificate.
    if (SSL_session_reused(self->stream_.native_handle()) != 1)
      return self->fail(handshake_fault::wrong_key, "the pre-shared key was not used");
    self->incoming_.resize(first_room);
    self->last_arrival_ = steady::now();
    self->is_open_ = true;
    self->read();
    self->user_->opened();
  });
}

void channel::fail_handshake(const asio::error_code& error) {
  const bool is_of_tls = error.category() == asio::error::get_ssl_category();
  const int reason = is_of_tls ? ERR_GET_REASON(static_cast<unsigned long>(error.value())) : 0;
  fail(fault_of(side_, reason), text_of(error));
}

// ---- frames that come ----

void channel::read() {
  make_room();
  stream_.async_read_some(
      asio::buffer(incoming_.data() + end_, incoming_.size() - end_),
      [self = shared_from_this()](const asio::error_code& error, std::size_t count) {
        if (self->user_ == nullptr) return;
        if (error) return self->fail(handshake_fault::other, text_of(error));
        self->last_arrival_ = steady::now();
        self->end_ += count;
        self->take_frames();
        if (self->user_ != nullptr) self->user_->arrived_all();
        if (self->user_ != nullptr) self->read();
      });
}

/// Calls the user, which may close the channel.
void channel::take_frames() {
  while (user_ != nullptr && end_ - begin_ >= length_size) {
    const std::span<const std::uint8_t> there(incoming_.data() + begin_, end_ - begin_);
    const std::size_t length = payload_length(there.first<length_size>());
    if (length == 0 || length > longest_)
      return fail(handshake_fault::other, "it sent what is no frame");
    if (there.size() - length_size < length) return;
    begin_ += length_size + length;
    user_->arrived(there.subspan(length_size, length));
  }
}

/// The buffer grows with what has come, not with what a frame says that will come.
void channel::make_room() {
  if (begin_ > 0) {
    std::copy(incoming_.begin() + static_cast<std::ptrdiff_t>(begin_),
              incoming_.begin() + static_cast<std::ptrdiff_t>(end_), incoming_.begin());
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == incoming_.size()) incoming_.resize(2 * incoming_.size());
}

// ---- frames that go ----

void channel::wake() {
  if (user_ == nullptr || !is_open_ || is_writing_) return;
  // The write begins when the caller's turn is over: the rest of what it sends goes along.
  is_writing_ = true;
  is_about_to_write_ = true;
  asio::post(stream_.get_executor(), [self = shared_from_this()] { self->begin_write(); });
}

void channel::wake_now() {
  wake();
  begin_write();
}

void channel::begin_write() {
  if (std::exchange(is_about_to_write_, false)) write();
}

void channel::write() {
  if (user_ == nullptr) return;
  outgoing_.clear();
  user_->fill(outgoing_);
  if (user_ == nullptr) return;
  if (outgoing_.empty()) return written();
  if (++writes_ % writes_of_a_key == 0)
    SSL_key_update(stream_.native_handle(), SSL_KEY_UPDATE_NOT_REQUESTED);
  asio::async_write(stream_, asio::buffer(outgoing_),
                    [self = shared_from_this()](const asio::error_code& error, std::size_t) {
                      if (self->user_ == nullptr) return;
                      if (error) return self->fail(handshake_fault::other, text_of(error));
                      self->write();
                    });
}

/// Everything that the user had is written.
void channel::written() {
  is_writing_ = false;
  if (closes_) fail(handshake_fault::other, "it was refused");
}

void channel::trust() { longest_ = longest_payload; }

void channel::close_after_write() {
  closes_ = true;
  wake();
}

// ---- the end ----

void channel::close() {
  user_ = nullptr;
  asio::error_code ignored;
  stream_.next_layer().close(ignored);
}

void channel::fail(handshake_fault fault, std::string text) {
  channel_user* const user = user_;
  close();
  user->broken({fault, std::move(text)});
}

}  // namespace lockflight::cluster::link
