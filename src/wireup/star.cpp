#include "wireup/star.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"

namespace lockflight::wireup {
namespace {

constexpr int ended = POLLRDHUP | POLLERR | POLLHUP;

void append(std::string& to, const std::string& part) {
  const std::uint64_t length = part.size();
  to.append(reinterpret_cast<const char*>(&length), sizeof length);
  to += part;
}

std::vector<std::string> parts_in(const std::string& whole, int size) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (int r = 0; r < size; ++r) {
    std::uint64_t length = 0;
    if (whole.size() - at < sizeof length)
      throw launch_failed("rank 0 passed on too few parts of an exchange");
    std::memcpy(&length, whole.data() + at, sizeof length);
    at += sizeof length;
    parts.push_back(whole.substr(at, length));
    at += parts.back().size();
  }
  return parts;
}

/// `why`: what the kernel has said of the connection, an errno.
loss loss_of(const peer& who, int why) {
  return {.name = name_of(who),
          .silent = why == ETIMEDOUT || why == EHOSTUNREACH || why == ENETUNREACH};
}

}  // namespace

std::string loss::what() const {
  return name + " is gone: " +
         (silent ? "its host has not answered for " + std::to_string(silence_s) + " s"
                 : "its process has ended");
}

std::string name_of(const peer& of) { return "rank " + std::to_string(of.rank) + " on " + of.host; }

star::star(int rank, int size, std::vector<peer> peers)
    : rank_(rank), size_(size), peers_(std::move(peers)) {
  for (const peer& p : peers_) watch(p.line);
}

// A connection that is closed while something unread is there takes what was sent last with it, and
// that is the reason why the launch is over.
star::~star() {
  if (failure_.empty()) return;
  constexpr std::uint64_t longest_wait_ns = 500'000'000;  // for all of them together
  constexpr std::uint64_t ns_in_ms = 1'000'000;
  const std::uint64_t end = now_ns() + longest_wait_ns;
  for (const peer& p : peers_) shutdown(p.line.get(), SHUT_WR);
  for (const peer& p : peers_) {
    pollfd waits{p.line.get(), POLLIN, 0};
    char unread[4096];
    const auto left_ms = [end] {
      return static_cast<int>((end - std::min(end, now_ns())) / ns_in_ms);
    };
    while (poll(&waits, 1, left_ms()) > 0)
      if (recv(p.line.get(), unread, sizeof unread, MSG_DONTWAIT) <= 0) break;
  }
}

std::vector<std::string> star::all_gather(const std::string& mine,
                                          const std::function<void()>& meanwhile) {
  if (!failure_.empty()) throw launch_failed(failure_);
  if (rank_ != 0) {
    send(peers_[0], frame_kind::part, mine);
    return parts_in(receive(peers_[0], frame_kind::whole, meanwhile), size_);
  }
  std::vector<std::string> parts{mine};
  for (const peer& p : peers_) parts.push_back(receive(p, frame_kind::part, meanwhile));
  std::string whole;
  for (const std::string& part : parts) append(whole, part);
  for (const peer& p : peers_) send(p, frame_kind::whole, whole);
  return parts;
}

void star::barrier(const std::function<void()>& meanwhile) {
  static_cast<void>(all_gather("", meanwhile));
}

void star::send(const peer& to, frame_kind kind, const std::string& content) {
  if (!send_frame(to.line, kind, content)) lost(to, errno);
}

std::string star::receive(const peer& from, frame_kind expected,
                          const std::function<void()>& meanwhile) {
  constexpr int between_checks_ms = 200;
  constexpr unsigned looks_between_checks = 64;
  for (unsigned looks = 1;; ++looks) {
    pollfd waits{from.line.get(), POLLIN, 0};
    if (poll(&waits, 1, meanwhile ? 0 : between_checks_ms) > 0) break;
    if (!meanwhile || looks % looks_between_checks == 0) check();
    if (!meanwhile) continue;
    meanwhile();
    sched_yield();
  }
  frame got;
  if (!receive_frame(from.line, got)) lost(from);
  if (got.kind == frame_kind::fault) give_up(got.content, &from);
  if (got.kind != expected)
    give_up(name_of(from) + " is in another step of the launch than rank " + std::to_string(rank_),
            nullptr);
  return std::move(got.content);
}

void star::check() {
  if (!failure_.empty()) throw launch_failed(failure_);
  std::vector<pollfd> waits;
  for (const peer& p : peers_) waits.push_back({p.line.get(), POLLIN | POLLRDHUP, 0});
  if (poll(waits.data(), waits.size(), 0) <= 0) return;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const peer& p = peers_[i];
    // The kernel says it once, to the first call that asks.
    if ((waits[i].revents & POLLERR) != 0)
      if (const int why = error_of(p.line); why != 0) lost(p, why);
    if (has_fault(p.line)) {
      frame got;
      if (!receive_frame(p.line, got)) lost(p);
      give_up(got.content, &p);
    }
    if ((waits[i].revents & ended) == 0) continue;
    // Bytes that rank 0 has sent before it ended may be the end of our last call: then all is well.
    // Unread bytes of another rank are a call that rank 0 has not answered.
    char next = 0;
    if (rank_ == 0 || recv(p.line.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) lost(p);
  }
}

void star::lost(const peer& who, int why) {
  // A rank reports why it ends, if it can.
  limit_receive(who.line, std::chrono::milliseconds(500));
  for (frame got; receive_frame(who.line, got);)
    if (got.kind == frame_kind::fault) give_up(got.content, &who);
  give_up(loss_of(who, why == 0 ? errno : why).what(), &who);
}

void star::give_up(const std::string& why, const peer* source) {
  failure_ = why;
  for (const peer& p : peers_)
    if (&p != source) static_cast<void>(send_frame(p.line, frame_kind::fault, why));
  throw launch_failed(why);
}

void star::fail(const std::string& why) {
  if (!failure_.empty()) return;
  failure_ = why;
  for (const peer& p : peers_) static_cast<void>(send_frame(p.line, frame_kind::fault, why));
}

std::optional<loss> star::await_loss(int until) {
  std::vector<pollfd> waits{{until, POLLIN, 0}};
  for (const peer& p : peers_) waits.push_back({p.line.get(), POLLIN, 0});
  for (std::size_t left = peers_.size(); left > 0;) {
    if (poll(waits.data(), waits.size(), -1) < 0) continue;  // interrupted
    if (waits[0].revents != 0) return std::nullopt;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (waits[i + 1].revents == 0) continue;
      frame got;
      if (!receive_frame(peers_[i].line, got)) return loss_of(peers_[i], errno);
      if (got.kind == frame_kind::fault) return std::nullopt;
      if (got.kind != frame_kind::leave) continue;
      waits[i + 1].fd = -1;  // not polled any more
      --left;
    }
  }
  return std::nullopt;
}

void star::leave() {
  for (const peer& p : peers_) static_cast<void>(send_frame(p.line, frame_kind::leave, ""));
}

}  // namespace lockflight::wireup
