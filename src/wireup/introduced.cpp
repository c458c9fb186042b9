// The rendezvous, at a port of rank 0, of ranks that another library has numbered.
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <random>
#include <sstream>

#include "wireup/rendezvous.hpp"
#include "wireup/star.hpp"

namespace lockflight::wireup {
namespace {

/// A listener at a free port of all this host's addresses.
socket listen_anywhere(int ranks) {
  const auto bound = [&](int family, const sockaddr* to, socklen_t length) {
    socket made(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int no = 0;
    if (made && family == AF_INET6)
      setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (made && bind(made.get(), to, length) == 0 &&
        listen(made.get(), std::min(ranks, SOMAXCONN)) == 0)
      return made;
    return socket();
  };
  sockaddr_in6 both{};
  both.sin6_family = AF_INET6;
  if (socket made = bound(AF_INET6, reinterpret_cast<const sockaddr*>(&both), sizeof both))
    return made;
  // A host without IPv6.
  sockaddr_in only{};
  only.sin_family = AF_INET;
  if (socket made = bound(AF_INET, reinterpret_cast<const sockaddr*>(&only), sizeof only))
    return made;
  throw launch_failed("rank 0 finds no port to listen at on host '" + host_name() + "'");
}

std::string port_of(const socket& listener) {
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &length);
  const auto port = at.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(at).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(at).sin_port;
  return std::to_string(ntohs(port));
}

/// The addresses by which other hosts may reach this one; the loopback address if there is none.
std::vector<std::string> addresses_of_this_host() {
  ifaddrs* all = nullptr;
  getifaddrs(&all);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(all, freeifaddrs);
  std::vector<std::string> found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const int family = one->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr))
      continue;
    std::array<char, NI_MAXHOST> text{};
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(one->ifa_addr, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) ==
        0)
      found.emplace_back(text.data());
  }
  if (found.empty()) found.emplace_back("127.0.0.1");
  return found;
}

}  // namespace

std::string host_name() {
  std::array<char, 64> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::unique_ptr<group> join(const introduction& by) {
  rendezvous at;
  at.rank = by.rank;
  at.ranks = by.ranks;
  socket listener;
  std::string text;
  std::string why;
  if (by.rank == 0) {
    // The others wait for a text, whatever happens here.
    try {
      listener = listen_anywhere(by.ranks);
      text = port_of(listener) + ' ' + std::to_string(std::random_device()());
      for (const std::string& host : addresses_of_this_host()) text += ' ' + host;
    } catch (const std::exception& e) {
      why = e.what();
    }
  }
  text = by.from_first(text);
  if (!why.empty()) throw launch_failed(why);
  std::istringstream said(text);
  said >> at.port >> at.token;
  for (std::string host; said >> host;) at.hosts.push_back(host);
  if (at.hosts.empty()) throw launch_failed("rank 0 has not said where to meet");
  at.timeout = by.within ? *by.within : timeout();
  return meet(at, std::move(listener));
}

}  // namespace lockflight::wireup
