// Notifications about the agent to a service manager, by systemd's notification protocol: a
// datagram to the socket that NOTIFY_SOCKET names (sd_notify(3)). Without that variable none is
// sent.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"

namespace lockflight::cluster {

/// Asks the service manager to wait a minute more for an agent that has not begun yet, whatever the
/// start timeout of its unit is.
inline const std::string extends_start = "EXTEND_TIMEOUT_USEC=60000000";

inline void notify_service_manager(std::string_view what) {
  const char* const given = secure_getenv("NOTIFY_SOCKET");
  if (given == nullptr) return;
  const std::string path = given;
  sockaddr_un to{};
  if (path.size() < 2 || path.size() >= sizeof to.sun_path) return;
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  if (path[0] == '@') to.sun_path[0] = '\0';  // an abstract address
  const descriptor from(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!from) return;
  static_cast<void>(sendto(from.get(), what.data(), what.size(), MSG_NOSIGNAL,
                           reinterpret_cast<const sockaddr*>(&to),
                           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size())));
}

}  // namespace lockflight::cluster
