#include "names/agent/link/outgoing.hpp"

#include <algorithm>
#include <asio/ip/address.hpp>
#include <utility>

#include "base/median.hpp"
#include "names/agent/link/address.hpp"

namespace lockflight::cluster::link {
namespace {

constexpr steady::duration back_off_least = std::chrono::milliseconds(50);
constexpr steady::duration back_off_most = std::chrono::seconds(1);
constexpr int silent_keep_alives = 3;
constexpr std::size_t round_trips_most = 16;
/// The memory that a message in the queue takes beyond its bytes.
constexpr std::size_t queue_overhead = 64;

}  // namespace

outgoing::outgoing(std::shared_ptr<node> of, member_id to)
    : node_(std::move(of)),
      peer_{to, 0, {}},
      resolver_(node_->io),
      timer_(node_->io),
      back_off_(back_off_least),
      stream_(node_->next_stream()) {}

void outgoing::set_peer(const peer& is) {
  if (is == peer_) return;
  const bool was_peer = is_peer();
  if (was_peer && is.agent != peer_.agent) {
    begin_stream();
    round_trips_.clear();
  }
  peer_ = is;
  if (overflowed_) return;
  drop_connection();
  back_off_ = back_off_least;
  dial();
}

peer_status outgoing::status() const {
  peer_status is;
  is.who = peer_;
  is.is_connected = state_ == state::open;
  is.queued = queue_.size();
  is.queued_bytes = queued_bytes_;
  is.has_overflowed = overflowed_.has_value();
  if (!round_trips_.empty())
    is.round_trip = std::chrono::nanoseconds(
        static_cast<std::int64_t>(median_of({round_trips_.begin(), round_trips_.end()})));
  return is;
}

void outgoing::close() {
  state_ = state::closed;
  drop_connection();
}

// ---- the queue ----

void outgoing::send(const message& what) {
  newest_ = std::max(newest_, what.epoch);
  if (overflowed_ && newest_ <= *overflowed_) return;
  std::string frame = data_frame(acknowledged_ + queue_.size() + 1, what);
  if (queued_bytes_ + frame.size() + queue_overhead > node_->settings.options.queued_most)
    return overflow(newest_);
  queued_bytes_ += frame.size() + queue_overhead;
  queue_.push_back(std::move(frame));
  if (overflowed_) {
    overflowed_.reset();
    if (is_peer()) dial();
  } else if (state_ == state::open) {
    channel_->wake();
  }
}

bool outgoing::ask(std::uint64_t number, const std::string& what) {
  if (state_ != state::open) return false;
  append_text(asks_, frame_kind::asks, number, what);
  channel_->wake();
  return true;
}

void outgoing::begin_stream() {
  stream_ = node_->next_stream();
  queue_.clear();
  queued_bytes_ = 0;
  acknowledged_ = 0;
  written_ = 0;
  overflowed_.reset();
}

/// Drops the messages, of epochs up to the last one. Without a connection there is no answer, and
/// the member is not heard.
void outgoing::overflow(epoch_number last) {
  node_->trouble(peer_.id, "takes no messages: more than " +
                               std::to_string(node_->settings.options.queued_most >> 20) +
                               " MiB are queued for it, and are dropped. It counts as not heard");
  begin_stream();
  overflowed_ = last;
  close();
}

bool outgoing::acknowledged(std::uint64_t count) {
  if (count < acknowledged_ || count - acknowledged_ > queue_.size()) return false;
  for (; acknowledged_ < count; ++acknowledged_) {
    queued_bytes_ -= queue_.front().size() + queue_overhead;
    queue_.pop_front();
    if (written_ > 0) --written_;
  }
  return true;
}

// ---- dialling ----

void outgoing::drop_connection() {
  resolver_.cancel();
  timer_.cancel();
  ++waits_;
  if (channel_) std::exchange(channel_, nullptr)->close();
  asks_.clear();
}

void outgoing::dial() {
  state_ = state::connecting;
  wait(node_->settings.options.handshake_limit);
  const auto parts = split_address(peer_.address);
  if (!parts) return lost("the address is not HOST:PORT");
  asio::error_code is_name;
  const auto number = asio::ip::make_address(parts->host, is_name);
  if (!is_name) return connect({tcp::endpoint(number, parts->port)});
  resolver_.async_resolve(
      parts->host, std::to_string(parts->port),
      [weak = weak_from_this(), mine = waits_](const asio::error_code& error,
                                               const tcp::resolver::results_type& found) {
        const auto self = weak.lock();
        if (!self || self->waits_ != mine) return;
        if (error) return self->lost(error.message());
        self->connect({found.begin(), found.end()});
      });
}

void outgoing::connect(const std::vector<tcp::endpoint>& at) {
  channel_ =
      std::make_shared<channel>(tcp::socket(node_->io), node_->keys, tls_side::dialer, *this);
  channel_->dial(at);
}

void outgoing::dial_later() {
  state_ = state::waiting;
  wait(node_->jittered(back_off_));
  back_off_ = std::min(2 * back_off_, back_off_most);
}

void outgoing::wait(steady::duration how_long) {
  timer_.expires_after(how_long);
  timer_.async_wait([weak = weak_from_this(), mine = ++waits_](const asio::error_code& error) {
    const auto self = weak.lock();
    if (self && !error && self->waits_ == mine) self->timer();
  });
}

void outgoing::timer() {
  if (state_ == state::waiting)
    dial();
  else if (state_ == state::connecting)
    lost("no answer");
  else if (state_ == state::open)
    keep_alive();
}

/// A ping goes out also when messages do: it measures the round trip.
void outgoing::keep_alive() {
  const auto interval = node_->settings.options.keep_alive;
  if (steady::now() - channel_->last_arrival() > silent_keep_alives * interval)
    return lost("no answer");
  pings_ = true;
  channel_->wake();
  wait(interval);
}

void outgoing::lost(const std::string& why) {
  node_->trouble(peer_.id, (state_ == state::open ? "lost the connection to " : "cannot reach ") +
                               peer_.address + ": " + why);
  drop_connection();
  dial_later();
}

// ---- the connection ----

void outgoing::broken(const breakage& why) {
  if (why.fault == handshake_fault::wrong_key)
    lost("it has another pre-shared key (" + why.text + ")");
  else if (why.fault == handshake_fault::wrong_domain)
    lost("it belongs to another domain than '" + node_->settings.domain + "' (" + why.text + ")");
  else
    lost(why.text);
}

void outgoing::opened() {
  says_hello_ = true;
  pings_ = false;
  unanswered_.clear();
  written_ = 0;
  channel_->wake();
}

void outgoing::fill(std::string& to) {
  if (std::exchange(says_hello_, false)) {
    hello mine;
    mine.version = node_->settings.options.version;
    mine.from = node_->settings.self;
    mine.from_agent = node_->settings.agent;
    mine.to = peer_.id;
    mine.to_agent = peer_.agent;
    mine.stream = stream_;
    mine.received = acknowledged_;
    mine.domain = node_->settings.domain;
    append_hello(to, mine);
  }
  if (state_ != state::open) return;
  if (std::exchange(pings_, false)) {
    append_number(to, frame_kind::ping, ++pings_sent_);
    unanswered_.push_back({pings_sent_, steady::now()});
  }
  to += std::exchange(asks_, {});
  while (written_ < queue_.size() && to.size() < channel::good_write) to += queue_[written_++];
}

void outgoing::arrived(std::span<const std::uint8_t> payload) {
  if (state_ == state::connecting) {
    const auto by = read_hello(payload, node_->settings.options.version);
    return by ? greeted(*by) : lost("it sent what is no hello");
  }
  const frame_kind kind = kind_of(payload);
  if (kind == frame_kind::tells) {
    auto what = read_text(payload);
    return what ? node_->told(peer_.id, std::move(*what)) : lost("it sent what makes no sense");
  }
  const auto number = read_number(payload);
  const bool is_ack = kind == frame_kind::ack;
  if (!number || (!is_ack && kind != frame_kind::pong) ||
      (is_ack && (*number > acknowledged_ + written_ || !acknowledged(*number))))
    return lost("it sent what makes no sense");
  if (!is_ack) answered(*number);
  node_->heard(peer_.id);
}

void outgoing::greeted(const hello& by) {
  const std::string why = refusal(by);
  if (!why.empty()) return lost(why);
  // If it has less than it has acknowledged it has lost what was sent, and must not go on.
  if (!acknowledged(by.received))
    return lost("it has " + std::to_string(by.received) + " messages, and had acknowledged " +
                std::to_string(acknowledged_));
  written_ = 0;
  state_ = state::open;
  back_off_ = back_off_least;
  channel_->trust();
  // The hello does not count as an answer: an acceptor that hangs up at each message says it, too.
  keep_alive();
}

/// Why there is no talking to that agent; empty if there is.
std::string outgoing::refusal(const hello& by) const {
  if (by.version != node_->settings.options.version) return node_->other_version(by.version);
  if (by.domain != node_->settings.domain) return "it belongs to domain '" + by.domain + "'";
  if (by.from != peer_.id) return "member " + cluster::text_of(by.from) + " is there";
  if (by.from_agent != peer_.agent)
    return "its agent has number " + std::to_string(by.from_agent) + ", expected is " +
           std::to_string(peer_.agent);
  if (by.what == verdict::outdated)
    return "it knows a later agent than number " + std::to_string(node_->settings.agent) +
           " of this member";
  return by.what == verdict::accepted ? "" : "it refuses this agent";
}

void outgoing::answered(std::uint64_t ping_number) {
  while (!unanswered_.empty() && unanswered_.front().number < ping_number) unanswered_.pop_front();
  if (unanswered_.empty() || unanswered_.front().number != ping_number) return;
  const std::chrono::duration<double, std::nano> took = steady::now() - unanswered_.front().sent;
  unanswered_.pop_front();
  round_trips_.push_back(took.count());
  if (round_trips_.size() > round_trips_most) round_trips_.pop_front();
}

}  // namespace lockflight::cluster::link
