#include "wireup/rendezvous.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "wireup/star.hpp"

namespace lockflight::wireup {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The first message of a rank to rank 0.
struct greeting {
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::uint64_t token = 0;
  std::array<char, 32> version{};
  std::array<char, 64> host{};
};

template <std::size_t N>
void write(std::array<char, N>& to, const std::string& text) {
  text.copy(to.data(), N - 1);
}
template <std::size_t N>
std::string text_of(const std::array<char, N>& from) {
  return std::string(from.data(), strnlen(from.data(), N));
}

struct addresses_end {
  void operator()(addrinfo* all) const { freeaddrinfo(all); }
};
using addresses = std::unique_ptr<addrinfo, addresses_end>;

addresses resolve(const std::string& host, const rendezvous& at) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), at.port.c_str(), &hints, &found);
  if (error != 0)
    throw launch_failed("LOCKFLIGHT_RENDEZVOUS '" + at.where() + "': host '" + host +
                        "' is not found: " + gai_strerror(error));
  return addresses(found);
}

milliseconds left_until(clock::time_point end) {
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(end - clock::now()));
}

/// "rank 2", "ranks 1, 2 and 4", "ranks 1, 2, 3 and 97 more".
std::string list_of(const std::vector<int>& ranks) {
  constexpr std::size_t most_named = 8;
  const std::size_t named = ranks.size() > most_named ? most_named - 1 : ranks.size() - 1;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < named; ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  if (named > 0) text += " and ";
  const std::size_t rest = ranks.size() - named;
  return text + (rest > 1 ? std::to_string(rest) + " more" : std::to_string(ranks.back()));
}

// ---- rank 0 ----

socket listen_at(const rendezvous& at) {
  const addresses all = resolve(at.hosts.front(), at);
  int error = 0;
  for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next) {
    socket listener(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // Connections of an earlier launch that still wait in the kernel do not keep the port.
    const int yes = 1;
    setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (listener && bind(listener.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        listen(listener.get(), std::min(at.ranks, SOMAXCONN)) == 0)
      return listener;
    if (error == 0) error = errno;
  }
  std::string why = std::strerror(error);
  if (error == EADDRINUSE)
    why = "the port is in use, by another program or another rank 0 (accepted: a free one)";
  if (error == EADDRNOTAVAIL)
    why = "rank 0 is on host '" + host_name() + "', whose address this is not";
  throw launch_failed("LOCKFLIGHT_RENDEZVOUS '" + at.where() + "': " + why);
}

/// Rank 0 has a connection for each rank.
void allow_many_connections() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

class meeting {
 public:
  meeting(const rendezvous& at, socket listener)
      : at_(at),
        listener_(std::move(listener)),
        end_(clock::now() + at.timeout),
        come_(static_cast<std::size_t>(at.ranks)) {}

  /// Returns the connections to all other ranks.
  std::vector<peer> bring_together() {
    for (int missing = at_.ranks - 1; missing > 0;) {
      pollfd waits{listener_.get(), POLLIN, 0};
      const int ready = poll(&waits, 1, static_cast<int>(left_until(end_).count()));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) give_up();
      socket line(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!line && (errno == EMFILE || errno == ENFILE))
        refuse("rank 0 has no descriptor left for the other ranks' connections: " +
               std::string(std::strerror(errno)) + " (ulimit -n: one for each rank)");
      if (line && add(std::move(line))) --missing;
    }
    std::vector<peer> all;
    for (std::size_t r = 1; r < come_.size(); ++r) {
      if (!send_frame(come_[r].line, frame_kind::welcome, host_name())) {
        const std::string why = name_of(come_[r]) + " is gone: its process has ended";
        for (const peer& p : all) static_cast<void>(send_frame(p.line, frame_kind::fault, why));
        refuse(why);
      }
      all.push_back(std::move(come_[r]));
    }
    return all;
  }

 private:
  /// False for a connection that is no rank's.
  bool add(socket line) {
    limit_receive(line, milliseconds(2'000));
    frame got;
    greeting said;
    if (!receive_frame(line, got, sizeof said) || got.kind != frame_kind::hello ||
        got.content.size() != sizeof said)
      return false;
    std::memcpy(&said, got.content.data(), sizeof said);
    if (said.token != at_.token) return false;
    peer who{said.rank, text_of(said.host), std::move(line)};
    const std::string name = name_of(who);
    const auto refuse_for = [&](const std::string& why) {
      static_cast<void>(send_frame(who.line, frame_kind::refusal, why));
      refuse(why);
    };
    if (text_of(said.version) != LOCKFLIGHT_VERSION)
      refuse_for(name + " is lockflight " + text_of(said.version) + ", rank 0 is " +
                 LOCKFLIGHT_VERSION + " (accepted: the same version on all ranks)");
    if (said.ranks != at_.ranks)
      refuse_for(name + " says that there are " + std::to_string(said.ranks) +
                 " ranks, rank 0 says " + std::to_string(at_.ranks) +
                 " (accepted: the same on all ranks; LOCKFLIGHT_RANKS)");
    if (said.rank < 0 || said.rank >= at_.ranks) return false;
    peer& place = come_[static_cast<std::size_t>(said.rank)];
    if (said.rank == 0 || place.line)
      refuse_for("two processes are rank " + std::to_string(said.rank) + ", on " +
                 (said.rank == 0 ? host_name() : place.host) + " and on " + who.host +
                 " (accepted: one process for each rank; LOCKFLIGHT_RANK)");
    place = std::move(who);
    return true;
  }

  [[noreturn]] void give_up() {
    std::vector<int> missing;
    for (int r = 1; r < at_.ranks; ++r)
      if (!come_[static_cast<std::size_t>(r)].line) missing.push_back(r);
    refuse(list_of(missing) + (missing.size() == 1 ? " has" : " have") + " not come to " +
           at_.where() + " within " + std::to_string(at_.timeout.count()) +
           " s (LOCKFLIGHT_RENDEZVOUS_TIMEOUT)");
  }

  /// Tells the ranks that have connected, and those that connect in the next moments.
  [[noreturn]] void refuse(const std::string& why) {
    for (const peer& p : come_)
      if (p.line) static_cast<void>(send_frame(p.line, frame_kind::refusal, why));
    constexpr int grace_ms = 200;
    for (pollfd waits{listener_.get(), POLLIN, 0}; poll(&waits, 1, grace_ms) > 0;) {
      const socket line(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!line) break;
      limit_receive(line, milliseconds(grace_ms));
      // A connection that ends with unread bytes loses the bytes that were sent on it.
      if (frame hello; receive_frame(line, hello, sizeof(greeting)))
        static_cast<void>(send_frame(line, frame_kind::refusal, why));
    }
    throw launch_failed(why);
  }

  const rendezvous& at_;
  socket listener_;
  clock::time_point end_;
  std::vector<peer> come_;  // [rank]
};

// ---- the others ----

/// Connects to rank 0. Returns no socket if there is no answer in that time.
socket try_connect(const addrinfo& to, milliseconds most) {
  socket line(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit{most.count() / 1'000, most.count() % 1'000 * 1'000};
  setsockopt(line.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // of connect too
  if (!line || connect(line.get(), to.ai_addr, to.ai_addrlen) != 0) return socket();
  const timeval none{};
  setsockopt(line.get(), SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
  return line;
}

/// Introduces this rank to the process that listens there. Nothing, and `why`, if it is not rank 0.
/// Throws launch_failed if it is rank 0 and refuses us.
std::optional<peer> introduce(const rendezvous& at, socket line, std::string& why) {
  greeting mine;
  mine.rank = at.rank;
  mine.ranks = at.ranks;
  mine.token = at.token;
  write(mine.version, LOCKFLIGHT_VERSION);
  write(mine.host, host_name());
  // Rank 0 says who is missing, and may have begun to wait later than we did.
  limit_receive(line, at.timeout + milliseconds(2'000));
  frame answer;
  const bool sent = send_frame(line, frame_kind::hello,
                               std::string(reinterpret_cast<const char*>(&mine), sizeof mine));
  if (!sent || !receive_frame(line, answer)) {
    if (errno == EPROTO)
      why = "who answers at " + at.where() +
            " is no rank 0 of lockflight (accepted: a port of its own)";
    else if (errno == EAGAIN)
      why = "who answers at " + at.where() + " has said nothing for " +
            std::to_string(at.timeout.count()) + " s (LOCKFLIGHT_RENDEZVOUS_TIMEOUT)";
    else
      why = "rank 0 at " + at.where() + " is gone: its process has ended";
    return std::nullopt;
  }
  if (answer.kind != frame_kind::welcome) throw launch_failed(answer.content);
  return peer{0, answer.content, std::move(line)};
}

/// Tries all addresses, since another program may listen at one of them, until rank 0 answers or
/// time is over.
peer greet(const rendezvous& at) {
  constexpr milliseconds between_tries{30};
  constexpr milliseconds longest_try{2'000};
  const auto end = clock::now() + at.timeout;
  while (true) {
    std::string why;
    for (const std::string& host : at.hosts) {
      const addresses all = resolve(host, at);
      for (const addrinfo* one = all.get(); one != nullptr; one = one->ai_next)
        if (socket line =
                try_connect(*one, std::clamp(left_until(end), milliseconds(1), longest_try)))
          if (auto rank_0 = introduce(at, std::move(line), why)) return std::move(*rank_0);
    }
    if (!why.empty()) throw launch_failed(why);
    if (clock::now() + between_tries > end)
      throw launch_failed("rank 0 does not answer at " + at.where() +
                          ": nobody has listened there for " + std::to_string(at.timeout.count()) +
                          " s (LOCKFLIGHT_RENDEZVOUS_TIMEOUT)");
    std::this_thread::sleep_for(between_tries);
  }
}

}  // namespace

std::unique_ptr<group> meet(const rendezvous& at) {
  return meet(at, at.rank == 0 ? listen_at(at) : socket());
}

std::unique_ptr<group> meet(const rendezvous& at, socket listener) {
  std::vector<peer> others;
  if (at.rank == 0) {
    allow_many_connections();
    others = meeting(at, std::move(listener)).bring_together();
  } else {
    others.push_back(greet(at));
  }
  return std::make_unique<star>(at.rank, at.ranks, std::move(others));
}

}  // namespace lockflight::wireup
