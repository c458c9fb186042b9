#include "names/agent/link/incoming.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "names/agent/link/address.hpp"
#include "names/agent/link/codec.hpp"

namespace lockflight::cluster::link {
namespace {

/// An acknowledgement may wait so long: it goes out after the answer to the message, and one is
/// enough for many.
constexpr std::chrono::milliseconds acknowledge_after{5};
/// But not when so much has come.
constexpr std::size_t unacknowledged_most = 64 * 1024;
constexpr std::chrono::milliseconds accept_again_after{100};
constexpr int silences = 3;
/// Pings that may wait for their answers to be written.
constexpr std::size_t pongs_most = 64;

tcp::endpoint resolved(asio::io_context& io, const host_and_port& at) {
  tcp::resolver resolver(io);
  return *resolver.resolve(at.host, std::to_string(at.port), tcp::resolver::passive).begin();
}

}  // namespace

// ---- the port ----

listener::listener(std::shared_ptr<node> of)
    : node_(std::move(of)),
      acceptor_(node_->io),
      retry_(node_->io),
      sweep_(node_->io),
      acknowledge_(node_->io) {
  const std::string& address = node_->settings.address;
  const auto parts = split_address(address);
  if (!parts) throw std::runtime_error("cannot listen at '" + address + "': it is not HOST:PORT");
  host_ = parts->host;
  try {
    const tcp::endpoint wanted = resolved(node_->io, *parts);
    acceptor_.open(wanted.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(wanted);
    acceptor_.listen();
    endpoint_ = acceptor_.local_endpoint();
  } catch (const asio::system_error& error) {
    throw std::runtime_error("cannot listen at '" + address + "': " + error.code().message());
  }
}

std::string listener::address() const {
  const bool is_ipv6_number = host_.find(':') != std::string::npos;
  return (is_ipv6_number ? "[" + host_ + "]" : host_) + ":" + std::to_string(port());
}

void listener::start() {
  accept();
  sweep();
}

void listener::close() {
  is_closed_ = true;
  asio::error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  sweep_.cancel();
  acknowledge_.cancel();
  for (const auto& each : strangers_) each->close();
  strangers_.clear();
  for (auto& [id, each] : sources_)
    if (each.connection) std::exchange(each.connection, nullptr)->close();
}

void listener::accept() {
  acceptor_.async_accept(
      [weak = weak_from_this()](const asio::error_code& error, tcp::socket socket) {
        const auto self = weak.lock();
        if (!self || self->is_closed_) return;
        if (!error) {
          self->take(std::move(socket));
          return self->accept();
        }
        // Most likely there are no descriptors left.
        self->node_->trouble(0, "cannot accept a connection: " + error.message());
        self->retry_.expires_after(accept_again_after);
        self->retry_.async_wait([weak](const asio::error_code& stopped) {
          const auto again = weak.lock();
          if (again && !stopped && !again->is_closed_) again->accept();
        });
      });
}

void listener::take(tcp::socket socket) {
  asio::error_code is_gone;
  const tcp::endpoint from = socket.remote_endpoint(is_gone);
  if (is_gone) return;
  // The oldest has had the most time. An agent's handshake takes milliseconds.
  if (!strangers_.empty() && strangers_.size() >= node_->settings.options.handshakes_most)
    strangers_.front()->end("there are too many others");
  strangers_.push_back(std::make_shared<arrival>(node_, weak_from_this(), std::move(socket),
                                                 from.address().to_string()));
  strangers_.back()->start();
}

/// Ends the connections that say nothing.
void listener::sweep() {
  const auto now = steady::now();
  const link_options& options = node_->settings.options;
  while (!strangers_.empty() && now - strangers_.front()->since() > options.handshake_limit)
    strangers_.front()->end("it did not say who it is");
  for (auto& [id, each] : sources_)
    if (each.connection && now - each.connection->last_arrival() > silences * options.keep_alive)
      each.connection->end("nothing comes");
  sweep_.expires_after(std::min(options.keep_alive, options.handshake_limit) / 2);
  sweep_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
    const auto self = weak.lock();
    if (self && !error && !self->is_closed_) self->sweep();
  });
}

void listener::acknowledge_soon() {
  if (std::exchange(acknowledges_, true)) return;
  acknowledge_.expires_after(acknowledge_after);
  acknowledge_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
    const auto self = weak.lock();
    if (!self || error) return;
    self->acknowledges_ = false;
    for (auto& [id, each] : self->sources_)
      if (each.connection) each.connection->acknowledge();
  });
}

void listener::remove(const std::shared_ptr<arrival>& ended) {
  strangers_.remove(ended);
  const auto at = sources_.find(ended->member());
  if (at != sources_.end() && at->second.connection == ended) at->second.connection.reset();
}

// ---- who sends ----

void listener::know(const peer& is) {
  source& known = sources_[is.id];
  if (is.agent <= known.agent) return;
  if (known.connection) std::exchange(known.connection, nullptr)->close();
  known = {is.agent, 0, 0, nullptr};
}

bool listener::is_reached_by(member_id id) const {
  const auto at = sources_.find(id);
  return at != sources_.end() && at->second.connection != nullptr;
}

verdict listener::judge(const hello& of) const {
  const link_settings& mine = node_->settings;
  if (of.version != mine.options.version) return verdict::other_version;
  if (of.domain != mine.domain) return verdict::other_domain;
  if (of.to != mine.self || of.to_agent != mine.agent || of.from == 0 || of.from == mine.self)
    return verdict::other_agent;
  const auto at = sources_.find(of.from);
  if (at == sources_.end()) return verdict::accepted;
  const source& known = at->second;
  return std::pair(of.from_agent, of.stream) < std::pair(known.agent, known.stream)
             ? verdict::outdated
             : verdict::accepted;
}

hello listener::answer(const hello& to, const std::shared_ptr<arrival>& by) {
  hello mine;
  mine.version = node_->settings.options.version;
  mine.from = node_->settings.self;
  mine.from_agent = node_->settings.agent;
  mine.to = to.from;
  mine.to_agent = to.from_agent;
  mine.domain = node_->settings.domain;
  mine.what = judge(to);
  if (mine.what == verdict::other_version)
    node_->trouble(to.from, node_->other_version(to.version));
  if (mine.what != verdict::accepted) return mine;
  source& from = sources_[to.from];
  // A dialer has one connection at a time: the one before is broken, and did not notice.
  if (from.connection) from.connection->close();
  if (std::pair(to.from_agent, to.stream) != std::pair(from.agent, from.stream))
    from = {to.from_agent, to.stream, 0, nullptr};
  from.connection = by;
  strangers_.remove(by);
  mine.stream = from.stream;
  mine.received = from.received;
  return mine;
}

// ---- a connection ----

arrival::arrival(std::shared_ptr<node> of, std::weak_ptr<listener> at, tcp::socket socket,
                 std::string from)
    : node_(std::move(of)), listener_(std::move(at)), from_(std::move(from)) {
  channel_ = std::make_shared<channel>(std::move(socket), node_->keys, tls_side::acceptor, *this);
}

void arrival::end(const std::string& why) { broken({handshake_fault::other, why}); }

void arrival::broken(const breakage& why) {
  const auto self = shared_from_this();
  channel_->close();
  if (member_ != 0) {
    // The dialer comes back, and says what is wrong if it cannot.
  } else if (why.fault == handshake_fault::wrong_key) {
    node_->trouble(0, "a connection from " + from_ + " has another pre-shared key");
  } else if (why.fault == handshake_fault::wrong_domain) {
    node_->trouble(0, "a connection from " + from_ + " is not for domain '" +
                          node_->settings.domain + "', or has no pre-shared key");
  } else if (!is_refused_) {
    node_->trouble(0, "a connection from " + from_ + " ended in its handshake: " + why.text);
  }
  if (const auto at = listener_.lock()) at->remove(self);
}

void arrival::arrived(std::span<const std::uint8_t> payload) {
  if (is_refused_) return;
  if (member_ == 0) {
    const auto by = read_hello(payload, node_->settings.options.version);
    return by ? greet(*by) : end("it sent what is no hello");
  }
  if (kind_of(payload) == frame_kind::data) {
    unacknowledged_bytes_ += payload.size();
    const auto what = read_data(payload);
    return what ? take(*what) : end("it sent what is no message");
  }
  if (kind_of(payload) == frame_kind::asks) {
    const auto what = read_text(payload);
    return what ? tell(*what) : end("it sent what makes no sense");
  }
  const auto number = read_number(payload);
  if (!number || kind_of(payload) != frame_kind::ping) return end("it sent what makes no sense");
  pongs_.push_back(*number);
  if (pongs_.size() > pongs_most) end("it does not read");
}

void arrival::greet(const hello& by) {
  const auto at = listener_.lock();
  if (!at) return;
  answer_ = at->answer(by, shared_from_this());
  if (answer_->what != verdict::accepted) {
    is_refused_ = true;
    return channel_->close_after_write();
  }
  member_ = by.from;
  channel_->trust();
  channel_->wake();
}

void arrival::take(const data& what) {
  const auto self = shared_from_this();  // received() may drop it
  const auto at = listener_.lock();
  if (!at) return;
  source& from = at->source_of(member_);
  auto got = decode(what.encoded);
  if (what.number != from.received + 1 || !got || got->from != member_ ||
      got->to != node_->settings.self) {
    node_->trouble(member_, "sends what is no message, or one out of turn");
    return end("");
  }
  ++from.received;
  node_->received(std::move(*got));
}

void arrival::tell(const numbered_text& asked) {
  const auto self = shared_from_this();  // asked() may drop it
  const std::string text = node_->asked(member_, asked.text);
  append_text(tells_, frame_kind::tells, asked.number, text);
  if (tells_.size() > longest_payload) return end("it does not read");
  channel_->wake();
}

void arrival::arrived_all() {
  if (!pongs_.empty() || unacknowledged_bytes_ >= unacknowledged_most) return acknowledge();
  if (unacknowledged_bytes_ == 0) return;
  if (const auto at = listener_.lock()) at->acknowledge_soon();
}

void arrival::acknowledge() {
  if (unacknowledged_bytes_ == 0 && pongs_.empty()) return;
  acknowledges_ = true;
  channel_->wake();
}

void arrival::fill(std::string& to) {
  if (answer_) append_hello(to, *std::exchange(answer_, std::nullopt));
  to += std::exchange(tells_, {});
  if (!std::exchange(acknowledges_, false)) return;
  const auto at = listener_.lock();
  if (at && unacknowledged_bytes_ > 0)
    append_number(to, frame_kind::ack, at->source_of(member_).received);
  unacknowledged_bytes_ = 0;
  for (const std::uint64_t each : pongs_) append_number(to, frame_kind::pong, each);
  pongs_.clear();
}

}  // namespace lockflight::cluster::link
