#include "wireup/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

namespace lockflight::wireup {
namespace {

constexpr int first_question_s = 2;
constexpr int between_questions_s = 1;
static_assert(silence_s > first_question_s);

/// The first bytes of every frame, so that another program at the same port is noticed.
constexpr std::uint32_t magic = 0x6c666c31;

struct header {
  std::uint32_t mark = magic;
  frame_kind kind = frame_kind::hello;
  std::uint64_t length = 0;
};

void set(const socket& of, int level, int option, int value) {
  setsockopt(of.get(), level, option, &value, sizeof value);
}

bool send_all(const socket& to, const void* bytes, std::size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = ::send(to.get(), at, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    at += sent;
    count -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(const socket& from, void* bytes, std::size_t count) {
  char* at = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t got = ::recv(from.get(), at, count, MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = 0;
    if (got <= 0) return false;
    at += got;
    count -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

void watch(const socket& of) {
  limit_receive(of, std::chrono::milliseconds(0));
  set(of, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(of, IPPROTO_TCP, TCP_KEEPIDLE, first_question_s);
  set(of, IPPROTO_TCP, TCP_KEEPINTVL, between_questions_s);
  set(of, IPPROTO_TCP, TCP_KEEPCNT, (silence_s - first_question_s) / between_questions_s);
  // The same limit where something that was sent is not acknowledged: no question is asked then.
  set(of, IPPROTO_TCP, TCP_USER_TIMEOUT, silence_s * 1'000);
  set(of, IPPROTO_TCP, TCP_NODELAY, 1);
}

void limit_receive(const socket& of, std::chrono::milliseconds most) {
  const timeval limit{most.count() / 1'000, most.count() % 1'000 * 1'000};
  setsockopt(of.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

bool send_frame(const socket& to, frame_kind kind, const std::string& content) {
  header h;
  h.kind = kind;
  h.length = content.size();
  std::string all(reinterpret_cast<const char*>(&h), sizeof h);
  all += content;
  return send_all(to, all.data(), all.size());
}

bool receive_frame(const socket& from, frame& got, std::uint64_t most) {
  header h;
  if (!receive_all(from, &h, sizeof h)) return false;
  if (h.mark != magic || h.length > most) {
    errno = EPROTO;
    return false;
  }
  got.kind = h.kind;
  got.content.resize(h.length);
  return receive_all(from, got.content.data(), h.length);
}

int error_of(const socket& of) {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(of.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

bool has_fault(const socket& from) {
  header h;
  const ssize_t there = ::recv(from.get(), &h, sizeof h, MSG_PEEK | MSG_DONTWAIT);
  return there == ssize_t{sizeof h} && h.mark == magic && h.kind == frame_kind::fault;
}

}  // namespace lockflight::wireup
